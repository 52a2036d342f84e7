"""Versions of the packages that results depend on, in this process and on workers."""

import asyncio
import contextlib
import sys
import threading
import warnings
import weakref
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

# Another major or minor version of these packages is an error, since results depend on them.
DECISIVE = ("python", "manyfit", "scikit-learn", "numpy")
# Another version of one of these is a warning; another patch of Python is neither.
CHECKED = (*DECISIVE, "scipy")
# Seconds that a worker may take to say its versions when it is first met: a task may hold its interpreter.
MEET_S = 3.0

PackageVersions = Mapping[str, str | None]
"""Versions by package; None is not installed, or not known."""


def require_distributed(caller: str) -> None:
    """Raise an ImportError in the name of `caller` if Dask or distributed is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{caller} needs Dask's distributed: {error}. Install it with: pip install 'manyfit[cluster]'"
        ) from error


@cache
def process_versions() -> PackageVersions:
    """Look up the versions of the modules that compute results in this process, by package."""
    import numpy
    import scipy
    import sklearn

    from manyfit import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    loaded = {"scikit-learn": sklearn.__version__, "numpy": numpy.__version__, "scipy": scipy.__version__}
    return {"python": python, "manyfit": __version__, **loaded}


@cache
def versions_installed() -> PackageVersions:
    """Look up the installed versions as Dask's workers report theirs, by package.

    For a module that is read from its sources, `process_versions` may know a later one.
    """
    from distributed.versions import get_versions

    return plain_versions(get_versions(packages=list(CHECKED[1:])), CHECKED)


def version_differences(
    theirs: PackageVersions, ours: PackageVersions
) -> tuple[dict[str, str], dict[str, str]]:
    """Describe the versions that differ, by package: those that are an error, and those that are a warning.

    A version that is unknown on either side does not differ.
    """
    wrong, other = dict[str, str](), dict[str, str]()
    for package in CHECKED:
        their, our = theirs.get(package), ours.get(package)
        if their is None or our is None or their == our:
            continue
        minor = their.split(".")[:2] == our.split(".")[:2]
        if package == "python" and minor:
            continue  # no result depends on it
        found = other if minor or package not in DECISIVE else wrong
        found[package] = f"{package} is {their} instead of {our}"
    return wrong, other


def require_versions(versions: PackageVersions, where: str, client: Any) -> None:
    """Raise a RuntimeError, or warn once for each client, if these versions are not those of this process.

    `where` names the process that they are of.
    """
    wrong, other = version_differences(versions, process_versions())
    if wrong:
        raise versions_error(wrong, where)
    new = {package: text for package, text in other.items() if _known_versions(client).note_warning(text, "")}
    if new:
        warn_of_versions(new, where)


def versions_error(wrong: Mapping[str, str], where: str) -> RuntimeError:
    """Make the error that a process has other versions."""
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
    """Ask workers for their versions; those that do not answer in time are left out."""
    return await ask_workers(client, addresses, {"op": "versions", "packages": list(packages)}, limit)


async def ask_workers(
    client: Any, addresses: Iterable[str], message: Mapping[str, Any], limit: float
) -> dict[str, Any]:
    """Send a message to workers; those that do not answer in time are left out."""
    found: dict[str, Any] = {}

    async def ask(address: str) -> None:
        with contextlib.suppress(Exception):  # it goes away now, or does not answer
            call = client.scheduler.broadcast(msg=dict(message), workers=[address], on_error="ignore")
            found.update(await asyncio.wait_for(call, limit))

    await asyncio.gather(*map(ask, addresses))
    return found


def plain_versions(answer: Any, packages: Iterable[str]) -> PackageVersions:
    """Return the versions by package from the answer of a worker or scheduler; empty without an answer."""
    known = answer.get("packages", {}) if isinstance(answer, Mapping) else {}
    return {name: _plain(name, known.get(name)) for name in packages} if known else {}


def _plain(package: str, version: str | None) -> str | None:
    # Python's version has five parts, as sys.version_info.
    return ".".join(version.split(".")[:3]) if package == "python" and version else version


class _WorkerVersions:
    """Versions of the workers that a client knows."""

    def __init__(self) -> None:
        self.known: dict[str, PackageVersions] = {}  # by address; empty if a worker did not answer
        self._warned: dict[str, set[str]] = {}  # addresses by the text of a warning; "" is any worker
        self._lock = threading.Lock()

    def note_warning(self, text: str, address: str) -> bool:
        """Note a warning of a worker; return whether it is new."""
        with self._lock:
            warned = self._warned.setdefault(text, set())
            known = not warned.isdisjoint({address, ""}) if address else bool(warned)
            warned.add(address)
        return not known


_versions: "weakref.WeakKeyDictionary[Any, _WorkerVersions]" = weakref.WeakKeyDictionary()
_versions_lock = threading.Lock()


def _known_versions(client: Any) -> _WorkerVersions:
    with _versions_lock:
        return _versions.setdefault(client, _WorkerVersions())


class Versions:
    """Compares the versions of each worker with those of this process, once in a run.

    A client asks each worker once for all of its runs, but those that differ once in each.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._workers = client, _known_versions(client)
        self._seen: set[str] = set()  # addresses at the last comparison
        self._checked: set[str] = set()  # those of which the versions were known

    def require(self, workers: Iterable[str], *, lenient: bool = False, again: bool = False) -> None:
        """Compare the versions of new workers, as far as they are known; raise as `require_versions` does.

        `lenient`: warn of every difference. `again`: repeat requests without an answer.
        """
        known, workers = self._workers.known, set(workers)
        for address in self._seen - workers:  # another worker may have the same address later
            known.pop(address, None)
        self._seen, self._checked = workers, self._checked & workers
        new = sorted(workers - self._checked)
        # A worker that differs may be another one at the same address meanwhile.
        silent = {one for one in new if again and not known.get(one)}
        self._ask([one for one in new if one in silent or one not in known or _differs(known[one])])
        patches: dict[str, list[str]] = {}
        for address in new:
            if not (theirs := known.get(address)):
                continue
            self._checked.add(address)
            wrong, other = version_differences(theirs, versions_installed())
            if wrong and not lenient:
                raise versions_error(wrong, f"The worker {address}")
            for text in (wrong | other).values():
                if self._workers.note_warning(text, address):
                    patches.setdefault(text, []).append(address)
        for text, addresses in patches.items():
            few = ", ".join(addresses[:3]) + (f" and {len(addresses) - 3} more" if len(addresses) > 3 else "")
            warn_of_versions({"": text}, f"The worker {few}")

    def _ask(self, addresses: list[str]) -> None:
        """Ask workers for their versions, and wait for those that answer in time."""
        if not addresses:
            return
        answers: dict[str, Any] = {}
        asking = (ask_versions, self._client, addresses, CHECKED, MEET_S)
        with contextlib.suppress(TimeoutError, OSError):
            answers = self._client.sync(*asking, callback_timeout=2 * MEET_S)
        self._workers.known.update({one: plain_versions(answers.get(one), CHECKED) for one in addresses})


def _differs(versions: PackageVersions) -> bool:
    return any(version_differences(versions, versions_installed()))
