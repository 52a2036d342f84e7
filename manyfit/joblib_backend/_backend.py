"""joblib backend that runs calls of Parallel on a Dask cluster."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Literal

from joblib.parallel import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend

from manyfit._compat import drop_ready_batches
from manyfit.cluster.inspection.gpu_workers import GPU
from manyfit.cluster.inspection.scheduler_info import get_workers
from manyfit.cluster.pool.options import WorkerNames
from manyfit.cluster.pool.resource_queue import Resources, annotated_resources, worker_slots
from manyfit.cluster.pool.run import client_for
from manyfit.cluster.pool.worker_monitor import no_worker_error, select_workers
from manyfit.cluster.worker.content_pickle import APART_BYTES
from manyfit.cluster.worker.task_context import worker_of_thread
from manyfit.joblib_backend._options import CALL_OPTIONS, DeviceOption, Options, check_option

if TYPE_CHECKING:
    from manyfit.joblib_backend._parallel_call import ParallelCall

# Seconds between two checks for a first worker.
WAIT_S = 0.1
NO_CLIENT = (
    "The joblib backend 'manyfit' runs on a Dask cluster, and there is no Dask client: create one first, "
    "with manyfit.cluster.local_cluster() or distributed.Client('scheduler-address:8786')."
)


class ManyfitBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Run the tasks of `joblib.Parallel` on the workers of a Dask cluster.

    Use it by its name, ``"manyfit"``, followed by parameters: ``parallel_config(backend="manyfit",
    resources={"GPU": 1})``.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None is the current client when `Parallel` is called; there must be one.
    resources : mapping of str to number, or None, default=None
        Resources that each task takes of its worker, such as ``{"GPU": 1}``; it runs only on workers that
        declare them. None takes those of `dask.annotate` or, without any, those that the arguments need: a
        GPU for device arrays and for estimators that compute on a device, if any worker declares one.
    workers : str, int, sequence of these, or None, default=None
        Addresses or names of the only workers to run on.
    device : "cuda", tuple of (str, str) or None, default=None
        Device to which workers copy the arrays of calls whose estimators take device data, once each. Such
        calls run on workers that declare a GPU, unless `resources` are given. "cuda" is CuPy's device, or
        torch's if CuPy is not installed; a tuple is a library and the kind of its device, such as
        ``("torch", "cuda")``. None copies nothing.
    nested : {"inline", "cluster"}, default="inline"
        Where `Parallel` runs within a task: in the task's own process, as with joblib's other backends, or
        on the cluster. A task with resources would hold them while it waits, so it always uses its own
        process.
    apart_bytes : int or str, default=32768
        Size from which on arrays, and the pickles of other arguments, are sent apart from the tasks, once to
        each worker; 100_000 or "100 kB", for example.
    wait_for_workers_timeout : float, default=10
        Seconds to wait for a first worker before an error is raised.
    nesting_level : int or None, default=None
        Depth of nested calls of `Parallel`; set by joblib.
    inner_max_num_threads : int or None, default=None
        Threads of BLAS and OpenMP in each task; None keeps those that workers were started with.

    Raises
    ------
    ValueError
        If there is no client, or it is closed.

    See Also
    --------
    manyfit.cluster.local_cluster : Start a cluster on this machine.

    Notes
    -----
    One instance serves any number of calls of `Parallel`, even at once: each uses a copy of its own.

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
    workers: WorkerNames
    device: DeviceOption | None
    nested: str
    apart_bytes: int
    wait_for_workers_timeout: float
    # As in joblib's own backend for Dask.
    MAX_IDEAL_BATCH_DURATION = 1.0

    def __init__(
        self,
        client: Any = None,
        *,
        resources: Mapping[str, float] | None = None,
        workers: Any = None,
        device: DeviceOption | None = None,
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
        self.parallel: Any = None  # set on the copy for a call only
        self._depth = 0  # of calls on the cluster within tasks of the cluster
        self._call: ParallelCall | None = None
        self._array_bytes: int | None = None
        self._client()

    def _set(self, **options: Any) -> None:
        """Set some of the parameters."""
        for name, value in options.items():
            setattr(self, name, check_option(name, value))

    def __getstate__(self) -> dict[str, Any]:
        # A copy is for another call of `Parallel`, and a pickle for a worker, which has a client of its own.
        return {**vars(self), "client": None, "parallel": None, "_call": None}

    # ------------------------------------------------------------------------------- client and workers

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many tasks run at a time.

        Parameters
        ----------
        n_jobs : int or None
            As in `joblib.Parallel`; None is all slots of the cluster.

        Returns
        -------
        int
            1 only for ``n_jobs=1``, and within a task that runs `Parallel` in its own process: for 1, joblib
            uses no backend. On a cluster of one slot it is 2.
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
        slots = _wait_for_slots(client, self.workers, self._resources(), self.wait_for_workers_timeout)
        return max(2, slots + 1 + (n_jobs or -1))

    def _client(self) -> Any:
        """Return the client, or None within a task that runs `Parallel` in its own process."""
        if worker_of_thread() is not None:
            if self.nested != "cluster" or self._resources():
                return None
            from distributed import get_client

            return get_client()
        client = client_for(self.client)
        if client is None:
            raise ValueError(NO_CLIENT)
        return client

    def _resources(self) -> Resources:
        resources = self.resources
        if resources is None:
            resources = annotated_resources() or ({} if self.device is None else {GPU: 1})
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
        """Prepare a call of `Parallel`, which gets its own copy of this backend.

        Parameters
        ----------
        n_jobs : int
            As in `joblib.Parallel`.
        parallel : joblib.Parallel
            The caller.
        max_nbytes, mmap_mode : int or None, str or None
            As in `joblib.Parallel`: in mode "r", arrays of so many bytes are read-only in tasks.
        **options : dict
            Other options of `Parallel`: parameters of this class; all others are ignored.

        Returns
        -------
        int
            As `effective_n_jobs`.
        """
        if self.parallel is not parallel or parallel is None:
            own = copy(self)
            own.client, own.parallel = self.client, parallel
            own.reset_batch_stats()
            own._set(**{name: options[name] for name in CALL_OPTIONS if name in options})
            raise FallbackToBackend(own)
        n = self.effective_n_jobs(n_jobs)
        if n == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self._array_bytes = max_nbytes if mmap_mode == "r" else None
        return n

    def start_call(self) -> None:
        """Begin a call of `Parallel`."""
        from manyfit.joblib_backend._parallel_call import ParallelCall

        drop_ready_batches(self.parallel)
        options = Options(
            n_jobs=self.parallel.n_jobs,
            resources=self._resources(),
            worker_names=self.workers,
            priority=self._depth,  # tasks that others wait for run first
            apart_bytes=self.apart_bytes,
            copied=self._array_bytes,
            threads=self.inner_max_num_threads,
            no_worker_timeout=self.wait_for_workers_timeout,
            device=self.device,
        )
        self._call = ParallelCall(self._client(), options)

    def submit(self, func: Any, callback: Callable[[Any], None]) -> None:
        """Run a batch, and call back with its result or error.

        Parameters
        ----------
        func : joblib.parallel.BatchedCalls
            The batch.
        callback : callable
            Called with the argument of `retrieve_result_callback`.
        """
        assert self._call is not None
        self._call.submit(func.items, self.get_nested_backend(), callback)

    # Name of `submit` in joblib 1.4.
    apply_async = submit

    def retrieve_result_callback(self, out: Any) -> list[Any]:
        """Return the results of a batch, or raise its error.

        Parameters
        ----------
        out : BatchResult
            Argument of the callback.

        Returns
        -------
        list
            The results of the batch.
        """
        return out.result()  # type: ignore[no-any-return]

    def stop_call(self) -> None:
        """End a call of `Parallel`, and cancel its unfinished tasks."""
        if self._call is not None:
            self._call.close()
            self._call = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel unfinished tasks.

        Parameters
        ----------
        ensure_ready : bool
            Whether more calls follow; not used.
        """
        if self._call is not None:
            self._call.close()

    def terminate(self) -> None:
        """End the last call of `Parallel`, and reset the measured duration of batches."""
        self.stop_call()
        self.reset_batch_stats()

    # ------------------------------------------------------------------------------- calls in tasks

    def get_nested_backend(self) -> tuple[Any, int | None]:
        """Return the backend of `Parallel` within a task.

        Returns
        -------
        backend, n_jobs
            As joblib's other backends return, or this backend on the cluster.
        """
        if self.nested == "cluster" and not self._resources():
            inner = copy(self)
            inner.nesting_level, inner._depth = 0, self._depth + 1
            return inner, -1
        return super().get_nested_backend()  # type: ignore[no-any-return]

    @contextmanager
    def retrieval_context(self) -> Iterator[None]:
        """Free the slot of a task while it waits for its own tasks.

        Yields
        ------
        None
        """
        if worker_of_thread() is None:
            yield
            return
        from distributed import rejoin, secede

        secede()
        try:
            yield
        finally:
            rejoin()


def _wait_for_slots(client: Any, names: WorkerNames, resources: Resources, timeout: float) -> int:
    """Count the tasks that workers with these names run at a time; wait `timeout` seconds for a first one."""

    def count() -> int:
        workers = select_workers(get_workers(client), names)
        return sum(worker_slots(info, resources) for info in workers.values())

    if n := count():
        return n
    # A cluster that grows by demand needs to see some.
    probe = client.submit(bool, resources=dict(resources) or None, pure=False)
    try:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if n := count():
                return n
            time.sleep(WAIT_S)
        raise no_worker_error(client.scheduler.address, resources, names, timeout)
    finally:
        probe.cancel()
        probe.release()
