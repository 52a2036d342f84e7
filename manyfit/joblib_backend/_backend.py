"""joblib's contract of a backend: what each call of Parallel asks, and who answers."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Literal

from joblib.parallel import (
    AutoBatchingMixin,
    FallbackToBackend,
    ParallelBackendBase,
    SequentialBackend,
)

from manyfit._compat import drop_ready_batches
from manyfit.cluster.inspection.gpu_workers import GPU
from manyfit.cluster.pool.resource_queue import annotated
from manyfit.cluster.pool.run import client_for
from manyfit.cluster.worker.content_pickle import APART_BYTES
from manyfit.introspection.gpu_support import needs_gpu
from manyfit.joblib_backend._options import OF_A_CALL, Options, Place, checked
from manyfit.joblib_backend._workers import BackendWorkers, Names, Needs

if TYPE_CHECKING:
    from manyfit.joblib_backend._parallel_call import ParallelCall

NO_CLIENT = (
    "The joblib backend 'manyfit' runs on a Dask cluster, and there is no client of one here: create a Dask "
    "client first, with manyfit.cluster.local_cluster() or distributed.Client('scheduler-address:8786')."
)


class ManyfitBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Run what `joblib.Parallel` is given on the workers of a Dask cluster.

    Made by its name, ``"manyfit"``, where the parameters may follow: ``parallel_config(backend="manyfit",
    resources={"GPU": 1})``.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None is the current one when `Parallel` is called. There has to be one.
    resources : mapping of str to number, or None, default=None
        What each task takes of its worker, as ``{"GPU": 1}``: it runs only where that is declared. None is
        what `dask.annotate` says, or else what arguments need: a GPU for arrays of a device and for
        estimators that compute there, if any worker declares one.
    workers : str, int, sequence of these, or None, default=None
        Addresses or names of the only workers to run on.
    device : "cuda", tuple of (str, str) or None, default=None
        Where workers put the arrays of a call whose estimators take data of a device, once each; the calls
        then go to workers that declare a GPU, unless `resources` are given. "cuda" is CuPy's device, or
        torch's where CuPy is not installed; a tuple is a library and the kind of its device, as
        ``("torch", "cuda")``. None moves nothing.
    nested : {"inline", "cluster"}, default="inline"
        Where `Parallel` within a task runs: in the task's own process, as with joblib's other backends, or on
        the cluster. A task that takes resources holds them while it waits, so that with these it is always
        the task's own process.
    apart_bytes : int or str, default=32768
        Arrays, and other arguments by their pickles, of so many bytes travel apart from the tasks, once to
        each worker; as 100_000 or "100 kB".
    wait_for_workers_timeout : float, default=10
        Seconds to wait for a worker where there is none, before that is an error.
    nesting_level : int or None, default=None
        How deep in other tasks this is; set by joblib.
    inner_max_num_threads : int or None, default=None
        Threads of BLAS and OpenMP of each task; None is what workers were started with.

    Raises
    ------
    ValueError
        If there is no client, or it is closed; within a task, `Parallel` runs in its place.

    See Also
    --------
    manyfit.cluster.local_cluster : Start a cluster on this machine.

    Notes
    -----
    One instance serves any number of calls of `Parallel`, at once too: each gets a copy of its own.

    Examples
    --------
    >>> import joblib
    >>> import manyfit.joblib_backend
    >>> with joblib.parallel_config(backend="manyfit"):  # doctest: +SKIP
    ...     search.fit(X, y)
    """

    supports_retrieve_callback = True
    supports_inner_max_num_threads = True
    default_n_jobs = -1
    client: Any
    resources: Mapping[str, float] | None
    workers: Names
    device: Place | None
    nested: str
    apart_bytes: int
    wait_for_workers_timeout: float
    # As joblib's backend for Dask.
    MAX_IDEAL_BATCH_DURATION = 1.0

    def __init__(
        self,
        client: Any = None,
        *,
        resources: Mapping[str, float] | None = None,
        workers: Any = None,
        device: Place | None = None,
        nested: Literal["inline", "cluster"] = "inline",
        apart_bytes: int | str = APART_BYTES,
        wait_for_workers_timeout: float = 10.0,
        nesting_level: int | None = None,
        inner_max_num_threads: int | None = None,
    ) -> None:
        super().__init__(nesting_level=nesting_level)
        self.inner_max_num_threads = inner_max_num_threads
        self._set(
            client=client,
            resources=resources,
            workers=workers,
            device=device,
            nested=nested,
            apart_bytes=apart_bytes,
            wait_for_workers_timeout=wait_for_workers_timeout,
        )
        self.parallel: Any = None  # on a copy of its own only
        self._depth = 0  # on the cluster within tasks of the cluster
        self._call: ParallelCall | None = None
        self._array_bytes: int | None = None
        self._client()

    def _set(self, **options: Any) -> None:
        """Take some of the parameters."""
        for name, value in options.items():
            setattr(self, name, checked(name, value))

    def __reduce__(self) -> Any:
        # Without the client: workers have their own.
        names = (*OF_A_CALL[1:], "nesting_level", "inner_max_num_threads")
        kwargs = {name: getattr(self, name) for name in names}
        return _remade, (kwargs, self._depth)

    def __copy__(self) -> "ManyfitBackend":
        # Pickles are for workers.
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    # ------------------------------------------------------------------------------- who takes part

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Say how many tasks run at a time, at least as far as the caller asks.

        Parameters
        ----------
        n_jobs : int or None
            As in `joblib.Parallel`; None is all slots of the cluster.

        Returns
        -------
        int
            1 only if that was asked for, or within a task, where `Parallel` runs in its place: with 1 joblib
            does without a backend. So it is 2 or more on a cluster of one slot, too.
        """
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs == 1:
            return 1
        client = self._client()
        if client is None:
            return 1
        if n_jobs is not None and n_jobs > 1:
            return n_jobs
        there = BackendWorkers(client, self.workers, self.wait_for_workers_timeout)
        there.wait(self._needs())
        return max(2, there.slots(self._needs()) + 1 + (n_jobs or -1))

    def _client(self) -> Any:
        """The client, or None within a task that is to run in its place."""
        if _in_task():
            if self.nested != "cluster" or self._needs():
                return None
            from distributed import get_client

            return get_client()
        client = client_for(self.client)
        if client is None:
            raise ValueError(NO_CLIENT)
        return client

    def _needs(self) -> Needs:
        resources = self.resources
        if resources is None:
            resources = annotated() or ({} if self.device is None else {GPU: 1})
        return tuple(sorted(resources.items()))

    # ------------------------------------------------------------------------------- calls of Parallel

    def configure(
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        *,
        max_nbytes: int | None = None,
        mmap_mode: str | None = None,
        **options: Any,
    ) -> int:
        """Get ready for a `Parallel`, which gets a copy of this for itself.

        Parameters
        ----------
        n_jobs : int
            As in `joblib.Parallel`.
        parallel : joblib.Parallel
            Who asks.
        max_nbytes, mmap_mode : int or None, str or None
            As in `joblib.Parallel`: arrays of so many bytes are read-only in tasks, in mode "r".
        **options : dict
            More of what `Parallel` was given: any parameters of the class; others are for other backends.

        Returns
        -------
        int
            What `effective_n_jobs` says.
        """
        if self.parallel is not parallel or parallel is None:
            own = copy(self)
            own.parallel, own._call = parallel, None
            own.reset_batch_stats()
            own._set(**{name: options[name] for name in OF_A_CALL if name in options})
            raise FallbackToBackend(own)
        n = self.effective_n_jobs(n_jobs)
        if n == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self._array_bytes = max_nbytes if mmap_mode == "r" else None
        return n

    def start_call(self) -> None:
        """Begin a call of Parallel."""
        from manyfit.joblib_backend._parallel_call import ParallelCall

        drop_ready_batches(self.parallel)
        needs = self._needs()
        options = Options(
            n_jobs=self.parallel.n_jobs,
            needs=needs,
            workers=self.workers,
            priority=self._depth,  # what others wait for goes first
            apart_bytes=self.apart_bytes,
            copied=self._array_bytes,
            threads=self.inner_max_num_threads,
            patience=self.wait_for_workers_timeout,
            device=self.device,
        )
        self._call = ParallelCall(self._client(), options, (lambda value: False) if needs else needs_gpu)

    def submit(self, func: Any, callback: Callable[[Any], None]) -> None:
        """Have a batch run; whatever becomes of it, the callback is told.

        Parameters
        ----------
        func : joblib.parallel.BatchedCalls
            The batch.
        callback : callable
            Called with what `retrieve_result_callback` takes.
        """
        assert self._call is not None
        self._call.submit(func.items, self.get_nested_backend(), callback)

    # Of joblib 1.4.
    apply_async = submit

    def retrieve_result_callback(self, out: Any) -> list[Any]:
        """Read what the callback was told.

        Parameters
        ----------
        out : Outcome
            What it was called with.

        Returns
        -------
        list
            The results of the batch.
        """
        return out.result()  # type: ignore[no-any-return]

    def stop_call(self) -> None:
        """End a call of Parallel: what is not done is cancelled."""
        if self._call is not None:
            self._call.close()
            self._call = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what is not done.

        Parameters
        ----------
        ensure_ready : bool
            Whether more calls follow, which makes no difference here.
        """
        if self._call is not None:
            self._call.close()

    def terminate(self) -> None:
        """End the last call of Parallel, and forget how long batches take."""
        self.stop_call()
        self.reset_batch_stats()

    # ------------------------------------------------------------------------------- calls in tasks

    def get_nested_backend(self) -> tuple[Any, int | None]:
        """Say where `Parallel` within a task runs.

        Returns
        -------
        backend, n_jobs
            As joblib's other backends, or one on the cluster.
        """
        if self.nested == "cluster" and not self._needs():
            inner = copy(self)
            inner.nesting_level, inner._depth = 0, self._depth + 1
            return inner, -1
        backend, n_jobs = super().get_nested_backend()
        return backend, n_jobs

    @contextmanager
    def retrieval_context(self) -> Iterator[None]:
        """Leave the slot of a task to others while it waits for its own.

        Yields
        ------
        None
        """
        if not _in_task():
            yield
            return
        from distributed import rejoin, secede

        secede()
        try:
            yield
        finally:
            rejoin()


def _remade(options: Mapping[str, Any], depth: int) -> ManyfitBackend:
    backend = ManyfitBackend(**options)
    backend._depth = depth
    return backend


def _in_task() -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True
