"""Warnings and errors that manyfit adds to those of scikit-learn."""

__all__ = ["HostFallbackError", "HostFallbackWarning"]


class HostFallbackWarning(UserWarning):
    """Data on a device came to the host, because an estimator cannot work on them where they are."""


class HostFallbackError(RuntimeError):
    """The same as an error, raised before anything is moved, where the configuration asks for that."""
