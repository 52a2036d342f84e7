"""Warnings and errors that manyfit adds to those of scikit-learn."""

__all__ = ["HostFallbackError", "HostFallbackWarning", "Unsupported"]


class HostFallbackWarning(UserWarning):
    """Data on a device came to the host, because an estimator cannot work on them where they are."""


class HostFallbackError(RuntimeError):
    """The same as an error, raised before anything is moved, where the configuration asks for that."""


class Unsupported(Exception):
    """A family or summary does not serve this case; the text is the reason that plan and report print.

    Never an error for the user: what is not shared is fitted one by one by scikit-learn.
    """
