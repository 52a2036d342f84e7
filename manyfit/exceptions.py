"""Warnings and errors that manyfit adds to those of scikit-learn."""

__all__ = ["HostFallbackError", "HostFallbackWarning", "Unsupported"]


class HostFallbackWarning(UserWarning):
    """Data on a device were copied to the host, because an estimator does not support the device."""


class HostFallbackError(RuntimeError):
    """Raised under ``host_fallback="error"`` instead of a `HostFallbackWarning`, before data are copied."""


class Unsupported(Exception):
    """A family, summary or backend does not support this case; plan and report print the text as the reason.

    Users never see it as an error, because scikit-learn fits what manyfit does not.

    Parameters
    ----------
    reason : str
        Why, as the plan prints it.
    advice : str, optional
        A sentence on what a user can set so that more is shared; the plan prints it if several settings are
        concerned.
    """

    def __init__(self, reason: str = "", *, advice: str | None = None) -> None:
        super().__init__(reason)
        self.advice = advice
