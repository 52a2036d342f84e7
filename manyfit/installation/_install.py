"""`install` and `uninstall`: they set `fit` of scikit-learn's searches, and the class that runs its fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.utils.parallel import Parallel

from manyfit._compat import swap_parallel, validate_params
from manyfit.installation import _settings
from manyfit.installation._functions import InstalledParallel
from manyfit.installation._searches import SEARCHES, serving_fit
from manyfit.installation._settings import Settings
from manyfit.introspection.parameter_docs import complete_parameters
from manyfit.model_selection.search import SharedSearch, Sharing

_CONSTRAINTS = {
    name: SharedSearch._parameter_constraints[name] for name in ("sharing", "verify", "memory_limit")
}
_checked = validate_params({**_CONSTRAINTS, "client": "no_validation"}, prefer_skip_nested_validation=True)


@_checked
def install(
    *, sharing: Sharing = "auto", verify: int = 0, memory_limit: int | str | None = None, client: Any = False
) -> None:
    """Let scikit-learn's own searches and cross-validation share the work of their fits.

    From then on ``fit`` of scikit-learn's `GridSearchCV`, `RandomizedSearchCV` and halving searches, and the
    functions `cross_validate`, `cross_val_score`, `validation_curve` and `learning_curve`, run on manyfit's
    engine, wherever they were imported before, and inside scikit-learn, too. Classes and functions stay the
    same objects, and results are scikit-learn's.

    Parameters
    ----------
    sharing : {"auto", "exact", "optimum", "none"}, default="auto"
        As in `manyfit.model_selection.GridSearchCV`.
    verify : int, default=0
        Pairs of a setting and a split of each search that scikit-learn fits again; `report_of` has the
        differences.
    memory_limit : int or str, default=None
        As in `manyfit.model_selection.GridSearchCV`.
    client : distributed.Client, None or False, default=False
        The Dask cluster whose workers make the fits, as in `manyfit.model_selection.GridSearchCV`. False:
        none, even if there is a current client.

    See Also
    --------
    installed : The same for a block of code.
    uninstall : The reverse.
    report_of : What a search has shared.

    Notes
    -----
    It applies to all threads of this process, and to fits that its searches and functions make in worker
    processes; not to other processes. A second call replaces the options. Subclasses of the searches are
    served if they override nothing that a search calls while it is fitted. They, callbacks other than
    scikit-learn's, and data that lie on a device, in files or in Dask collections are left to scikit-learn,
    and `last_report` says so.

    Examples
    --------
    >>> import manyfit
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> manyfit.install()
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
    >>> manyfit.uninstall()
    >>> manyfit.report_of(search).fits_shared
    15
    """
    install_settings(Settings(sharing, verify, memory_limit, client))


def install_settings(settings: Settings) -> None:
    """Install manyfit with some settings, which replace all that are active."""
    with _settings.lock:
        _settings.remove()
        _settings.activate(settings)
        _patch()


def uninstall() -> None:
    """Let scikit-learn's searches and cross-validation run as they do without manyfit.

    It also ends `installed` blocks that are still running. Without `install` it does nothing.

    See Also
    --------
    install : The reverse.

    Examples
    --------
    >>> import manyfit
    >>> from sklearn.model_selection import GridSearchCV
    >>> before = GridSearchCV.fit
    >>> manyfit.install()
    >>> manyfit.uninstall()
    >>> GridSearchCV.fit is before
    True
    """
    with _settings.lock:
        _settings.remove()
        _unpatch()


@complete_parameters(install)
@_checked
@contextmanager
def installed(
    *, sharing: Sharing = "auto", verify: int = 0, memory_limit: int | str | None = None, client: Any = False
) -> Iterator[None]:
    """Install manyfit while a ``with`` block runs.

    Parameters
    ----------

    Yields
    ------
    None
        Nothing.

    See Also
    --------
    install : The same until `uninstall` is called.

    Notes
    -----
    It applies to all threads of this process. Where blocks overlap, in one thread or in several, the options
    of the one that began last count.

    Examples
    --------
    >>> import manyfit
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_validate
    >>> X, y = load_diabetes(return_X_y=True)
    >>> with manyfit.installed(sharing="exact"):
    ...     found = cross_validate(Ridge(), X, y, cv=5)
    """
    with block(Settings(sharing, verify, memory_limit, client)):
        yield


@contextmanager
def block(settings: Settings) -> Iterator[None]:
    """Install manyfit with some settings while a ``with`` block runs."""
    with _settings.lock:
        _settings.activate(settings)
        _patch()
    try:
        yield
    finally:
        with _settings.lock:
            _settings.remove(settings)
            if _settings.current() is None:
                _unpatch()


def load_ipython_extension(ipython: Any) -> None:
    """Install manyfit in a notebook: ``%load_ext manyfit``.

    Parameters
    ----------
    ipython : InteractiveShell
        The shell, which stays as it is.
    """
    install()


def unload_ipython_extension(ipython: Any) -> None:
    """Undo `load_ipython_extension`: ``%unload_ext manyfit``.

    Parameters
    ----------
    ipython : InteractiveShell
        The shell, which stays as it is.
    """
    uninstall()


# Each patched class with its `fit` of ours, and its own one, None where it inherits it.
_fits: dict[Any, tuple[Any, Any]] = {}


def _patch() -> None:
    for cls in SEARCHES:
        if cls not in _fits:
            _fits[cls] = serving_fit(cls), vars(cls).get("fit")
            cls.fit = _fits[cls][0]
    swap_parallel(Parallel, InstalledParallel)


def _unpatch() -> None:
    """Undo `_patch`; what others have replaced since then stays as it is."""
    for cls, (ours, theirs) in _fits.items():
        if vars(cls).get("fit") is not ours:
            continue
        if theirs is None:
            del cls.fit
        else:
            cls.fit = theirs
    _fits.clear()
    swap_parallel(InstalledParallel, Parallel)
