"""Versions of what results depend on: of this process, and of the workers of a cluster."""

import asyncio
import contextlib
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from manyfit.cluster.inspection.scheduler_info import call_soon_in_loop

# Results depend on them. Another major or minor version of these is an error ...
DECISIVE = ("python", "manyfit", "scikit-learn", "numpy")
# ... and of these, or another patch of any but Python, a warning.
CHECKED = (*DECISIVE, "scipy")
# A worker that is met for the first time is waited for this long, and once only: a task may hold its
# interpreter.
MEET_S = 3.0
# Seconds after which a worker that has not answered is asked again.
AGAIN_S = 5.0

Known = Mapping[str, str | None]
"""Versions by package; None is not installed, or not known."""


@cache
def versions_here() -> Known:
    """Look up the versions of this process, of the modules that compute results in it.

    Returns
    -------
    mapping of str to (str or None)
        By package.
    """
    import numpy
    import scipy
    import sklearn

    from manyfit import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    loaded = {"scikit-learn": sklearn.__version__, "numpy": numpy.__version__, "scipy": scipy.__version__}
    return {"python": python, "manyfit": __version__, **loaded}


@cache
def versions_installed() -> Known:
    """Look up the versions that are installed here, as Dask's workers say theirs.

    Returns
    -------
    mapping of str to (str or None)
        By package. Of a module that is read from its sources, `versions_here` may know a later one.
    """
    from distributed.versions import get_versions

    return plain_versions(get_versions(packages=list(CHECKED[1:])), CHECKED)


def version_differences(there: Known, here: Known) -> tuple[dict[str, str], dict[str, str]]:
    """Compare versions.

    Parameters
    ----------
    there, here : mapping of str to (str or None)
        Versions by package. What is not known on either side does not differ.

    Returns
    -------
    wrong, other : dict of str to str
        Those that differ, by package and in words: those that are an error, and those that are a warning.
    """
    wrong, other = dict[str, str](), dict[str, str]()
    for package in CHECKED:
        theirs, ours = there.get(package), here.get(package)
        if theirs is None or ours is None or theirs == ours:
            continue
        minor = theirs.split(".")[:2] == ours.split(".")[:2]
        if package == "python" and minor:
            continue  # no result depends on it
        found = other if minor or package not in DECISIVE else wrong
        found[package] = f"{package} is {theirs} there, and {ours} here"
    return wrong, other


def require_versions(there: Known, where: str, client: Any) -> None:
    """Raise, or warn, if versions are not those of this process.

    Parameters
    ----------
    there : mapping
        Versions by package, of the modules that compute results.
    where : str
        Whose they are, for messages.
    client : distributed.Client
        Whose worker it is. What it was warned of is not said again.

    Raises
    ------
    RuntimeError
        If a major or minor version differs of a package that decides results.
    """
    wrong, other = version_differences(there, versions_here())
    if wrong:
        raise other_versions(wrong, where)
    new = {package: text for package, text in other.items() if _met_by(client).tells(text, "")}
    if new:
        warn_of_versions(new, where)


def other_versions(wrong: Mapping[str, str], where: str) -> RuntimeError:
    """The error that a process has versions that are no good here."""
    return RuntimeError(
        f"{where} has other versions than this process: {'; '.join(wrong.values())}. Its results would "
        "be those of another version. Install the same versions everywhere: "
        "print(manyfit.cluster.describe(client)) lists what differs."
    )


def warn_of_versions(found: Mapping[str, str], where: str) -> None:
    """Warn of versions that differ."""
    warnings.warn(
        f"{where} has other versions than this process: {'; '.join(found.values())}. Results may differ. "
        "print(manyfit.cluster.describe(client)) lists what differs.",
        RuntimeWarning,
        stacklevel=2,
    )


async def ask_versions(
    client: Any, addresses: Iterable[str], packages: Iterable[str], limit: float
) -> dict[str, Any]:
    """What workers say of their versions, each asked for itself; without those that do not answer in time."""
    found: dict[str, Any] = {}

    async def ask(address: str) -> None:
        message = {"op": "versions", "packages": list(packages)}
        with contextlib.suppress(Exception):  # it goes away now, or does not answer
            call = client.scheduler.broadcast(msg=message, workers=[address], on_error="ignore")
            found.update(await asyncio.wait_for(call, limit))

    await asyncio.gather(*map(ask, addresses))
    return found


def plain_versions(told: Any, packages: Iterable[str]) -> Known:
    """Versions by package, of what a process of Dask's says of itself; empty if it has not answered."""
    known = told.get("packages", {}) if isinstance(told, Mapping) else {}
    return {name: _plain(name, known.get(name)) for name in packages} if known else {}


def _plain(package: str, version: str | None) -> str | None:
    # Python's has five parts, as sys.version_info; the first three say which it is.
    return ".".join(version.split(".")[:3]) if package == "python" and version else version


class _Met:
    """Versions of the workers that a client has met."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}
        self.asked: dict[str, float] = {}
        self.told: dict[str, set[str]] = {}  # addresses by what the user was warned of; "" is some worker
        self.lock = threading.Lock()

    def forget(self, addresses: Iterable[str]) -> None:
        """Another worker may be there another time."""
        with self.lock:
            for address in addresses:
                self.known.pop(address, None)
                self.asked.pop(address, None)

    def tells(self, text: str, address: str) -> bool:
        """Whether the user has not read that of this worker, and does now."""
        with self.lock:
            told = self.told.setdefault(text, set())
            known = not told.isdisjoint({address, ""}) if address else bool(told)
            told.add(address)
        return not known


_met: "weakref.WeakKeyDictionary[Any, _Met]" = weakref.WeakKeyDictionary()
_met_lock = threading.Lock()


def _met_by(client: Any) -> _Met:
    with _met_lock:
        return _met.setdefault(client, _Met())


class Versions:
    """Compares the versions of workers with those of this process, each once in a run.

    Parameters
    ----------
    client : distributed.Client
        Connected. It asks each worker once for all of its runs.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._met = client, _met_by(client)
        self._checked: set[str] = set()

    def require(
        self, workers: Iterable[str], *, wait: bool = False, lenient: bool = False, again: bool = False
    ) -> None:
        """Compare the versions of workers that this run has not met, as far as they have said them.

        Parameters
        ----------
        workers : iterable of str
            Addresses.
        wait : bool
            Whether workers that were never asked may answer first.
        lenient : bool
            Whether every difference is a warning.
        again : bool
            Whether workers that were asked and have not answered are asked now.

        Raises
        ------
        RuntimeError
            As `require_versions`.
        """
        workers = set(workers)
        self._met.forget(self._checked - workers)
        self._checked &= workers
        new = workers - self._checked
        if not new:
            return
        if again:
            self._met.forget(new - self._met.known.keys())
        asked = self._ask(new, wait)
        differ = {
            one
            for one, known in self._known(new).items()
            if any(version_differences(known, versions_installed()))
        }
        if differ - asked:  # another worker may be there meanwhile, at the same address
            self._met.forget(differ - asked)
            self._ask(differ - asked, wait=True)
        patches: dict[str, list[str]] = {}
        for address, known in self._known(new).items():
            self._checked.add(address)
            wrong, other = version_differences(known, versions_installed())
            if wrong and not lenient:
                raise other_versions(wrong, f"The worker {address}")
            for text in (wrong | other).values():
                if self._met.tells(text, address):
                    patches.setdefault(text, []).append(address)
        for text, addresses in patches.items():
            few = ", ".join(addresses[:3]) + (f" and {len(addresses) - 3} more" if len(addresses) > 3 else "")
            warn_of_versions({"": text}, f"The worker {few}")

    def _known(self, addresses: Iterable[str]) -> dict[str, Known]:
        known = self._met.known.copy()
        return {address: known[address] for address in sorted(addresses) if address in known}

    def _ask(self, addresses: Iterable[str], wait: bool) -> set[str]:
        """Ask workers that have not said their versions; those that were waited for."""
        now, met = time.monotonic(), self._met
        with met.lock:
            ask = [a for a in addresses if a not in met.known and now - met.asked.get(a, -AGAIN_S) >= AGAIN_S]
            first = [address for address in ask if address not in met.asked]
            met.asked.update(dict.fromkeys(ask, now))
        if wait and first:
            with contextlib.suppress(TimeoutError, OSError):
                self._client.sync(self._learn, ask, callback_timeout=2 * MEET_S)
            return set(ask)
        if ask:
            call_soon_in_loop(self._client, self._learn, ask)
        return set()

    async def _learn(self, addresses: list[str]) -> None:
        told = await ask_versions(self._client, addresses, CHECKED, MEET_S)
        self._met.known.update({address: plain_versions(one, CHECKED) for address, one in told.items()})
