"""A cluster of this machine: processes, threads, memory and connections; and that nothing is left of it."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, Security, default_client
from distributed.comm import connect
from distributed.system import MEMORY_LIMIT
from distributed.utils import LoopRunner

from manyfit.cluster import _local_cluster as _start
from manyfit.cluster import describe, local_cluster
from tests.cluster._processes import ROOT, gone, wait_for
from tests.cluster._recorded_cluster import recorded

pytestmark = pytest.mark.thorough

VARIABLES = (*_start.THREAD_VARIABLES, "PYTHONHASHSEED", "MALLOC_TRIM_THRESHOLD_")


@pytest.fixture(scope="module")
def started():
    """A cluster on a machine that says it has four cores, beside one that has taken Dask's port."""
    with pytest.MonkeyPatch.context() as patch, socket.socket() as taken:
        patch.setattr(_start, "cpu_count", lambda: 4)
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        with suppress(OSError):  # somebody else may have it
            taken.bind(("", 8787))
            taken.listen()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            client = local_cluster(2)
        left = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        pids = list(client.run(os.getpid).values())
        yield client, left
    client.close()
    assert wait_for(lambda: gone(pids), "the end of the workers")
    client.close()  # once more is harmless


def test_processes_and_threads(started):
    client, _ = started
    workers = describe(client).workers
    found = [(worker.name, worker.threads, worker.slots, worker.device) for worker in workers]
    assert found == [("0", 1, 1, None), ("1", 1, 1, None)]
    pids = set(client.run(os.getpid).values())
    assert len(pids) == 2 and os.getpid() not in pids


@pytest.mark.invariant("A local cluster shares cores and memory and leaves the environment as it was")
def test_memory_is_shared_with_this_process(started):
    client, _ = started
    assert {worker.memory_limit for worker in describe(client).workers} == {MEMORY_LIMIT // 3}


@pytest.mark.invariant("A local cluster shares cores and memory and leaves the environment as it was")
def test_libraries_share_the_cores(started):
    def threads_of_libraries() -> set[tuple[str, int]]:
        import scipy.linalg  # noqa: F401
        import sklearn.utils  # noqa: F401
        from threadpoolctl import threadpool_info

        return {(library["user_api"], library["num_threads"]) for library in threadpool_info()}

    client, _ = started
    for threads in client.run(threads_of_libraries).values():
        # Two of four cores for each of two workers; OpenBLAS takes no more than there are in truth.
        assert threads == {("openmp", 2), ("blas", min(2, os.cpu_count()))}


@pytest.mark.invariant("A local cluster shares cores and memory and leaves the environment as it was")
def test_the_environment_of_this_process_stays(started):
    _, left = started
    assert left == {}


def test_the_client_is_dasks(started):
    client, _ = started
    assert isinstance(client, Client) and isinstance(client.cluster, LocalCluster)
    assert default_client() is client
    assert client.submit(lambda x: x + 1, 1).result() == 2


def test_the_dashboard_is_on_a_free_port_of_this_machine(started):
    client, _ = started
    server = client.cluster.scheduler.http_server
    assert server.address == "127.0.0.1" and server.port not in (0, 8787)


# Connections by TLS


@pytest.fixture(scope="module")
def secure():
    with local_cluster(1, security=True) as client:
        yield client


def refused(client: Client, address: str, security: Security) -> str:
    """The error of another client, which has its own security and gets no connection.

    Half a client that fails is closed by Dask when it is collected, in any thread, which warns: it is only
    its connection here. tests/cluster/test_by_hand.py has whole ones.
    """
    with pytest.raises((OSError, TypeError)) as caught:
        client.sync(connect, address, timeout=5, **security.get_connection_args("client"))
    return str(caught.value)


def test_every_connection_is_by_tls(secure):
    cluster = describe(secure)
    nannies = [info["nanny"] for info in secure.scheduler_info()["workers"].values()]
    addresses = [cluster.address, *(worker.address for worker in cluster.workers), *nannies]
    assert len(addresses) == 3
    assert [address.partition("://")[0] for address in addresses] == ["tls"] * 3
    assert secure.submit(lambda: 5).result() == 5


@pytest.mark.invariant("A cluster with TLS refuses connections without its certificate")
def test_who_has_no_certificate_is_refused(secure):
    address = secure.cluster.scheduler_address
    assert "ssl_context" in refused(secure, address, Security())
    assert "certificate" in refused(secure, address, Security.temporary())
    refused(secure, address.replace("tls://", "tcp://"), Security())
    assert secure.submit(lambda: 6).result() == 6


def sends(address: str, context: ssl.SSLContext) -> bool:
    """Whether a listener sends anything, as Dask's do first of all, after a handshake by TLS."""
    host, _, port = address.removeprefix("tls://").partition(":")
    try:
        with (
            socket.create_connection((host, int(port)), timeout=10) as plain,
            context.wrap_socket(plain) as c,
        ):
            return len(c.recv(1)) == 1
    except OSError:
        return False


@pytest.mark.invariant("A cluster with TLS refuses connections without its certificate")
def test_the_listeners_ask_for_a_certificate(secure):
    """Not only Dask's own client is refused: nothing is sent to one that has none."""
    without = ssl.create_default_context(cadata=secure.security.tls_ca_file)
    without.check_hostname = False
    its = secure.security.get_connection_args("client")["ssl_context"]
    for address in [secure.cluster.scheduler_address, *secure.scheduler_info()["workers"]]:
        assert sends(address, its) and not sends(address, without)


def test_a_security_object_is_passed_on(monkeypatch):
    options = recorded(monkeypatch)
    given = Security(require_encryption=False)
    local_cluster(1, security=given)
    assert options["security"] is given
    local_cluster(1, security=False)
    assert not options["security"].require_encryption
    local_cluster(1)
    assert options["security"] is None  # Dask's configuration decides


def test_without_cryptography_the_error_names_it(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ImportError, match="pip install cryptography"):
        local_cluster(1, security=True)


# Errors


@pytest.mark.parametrize("name", ["n_workers", "threads_per_worker", "slots_per_gpu"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2"])
def test_counts_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, not {value!r}"):
        local_cluster(**{name: value})


def test_other_arguments_are_checked():
    with pytest.raises(TypeError, match="asynchronous"):
        local_cluster(asynchronous=True)
    with pytest.raises(TypeError, match="security must be True, False, None or"):
        local_cluster(security="tls")


def test_workers_by_the_cores(monkeypatch):
    monkeypatch.setattr(_start, "cpu_count", lambda: 6)
    options = recorded(monkeypatch)
    for threads, workers in [(None, 6), (2, 3), (4, 1), (8, 1)]:
        local_cluster(threads_per_worker=threads, gpu=False, memory_limit="1GB")
        assert (options["n_workers"], options["threads_per_worker"]) == (workers, threads or 1)
        assert options["memory_limit"] == "1GB"


# Nothing is left


SCRIPT = """
import os, signal

if __name__ == "__main__":
    from manyfit.cluster import local_cluster

    client = local_cluster(1)
    print(*client.run(os.getpid).values(), flush=True)
    {ending}
"""


ENDINGS = {"end": ("pass", 0), "killed": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL)}


def started_script(folder: Path, text: str) -> subprocess.Popen[str]:
    """A script that runs in a process of its own."""
    (folder / "script.py").write_text(text)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "script.py"], cwd=folder, env=environment, **pipes)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Scripts that start a cluster and do not close it, run at the same time: process and output of each."""
    processes = {
        name: started_script(tmp_path_factory.mktemp(name), SCRIPT.format(ending=ending))
        for name, (ending, _) in ENDINGS.items()
    }
    return {name: (process, *process.communicate()) for name, process in processes.items()}


@pytest.mark.invariant("No worker outlives the process that started the cluster")
@pytest.mark.parametrize("name", ENDINGS)
def test_no_process_outlives_a_script_that_closes_nothing(scripts, name):
    process, printed, errors = scripts[name]
    assert process.returncode == ENDINGS[name][1], errors
    pids = [int(pid) for pid in printed.split()]
    assert len(pids) == 1
    wait_for(lambda: gone(pids), "the end of the worker")


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_of_it(tmp_path):
    script = started_script(tmp_path, "from manyfit.cluster import local_cluster\nlocal_cluster(1)\n")
    _, errors = script.communicate()
    assert script.returncode == 1
    assert 'under if __name__ == "__main__":' in errors.splitlines()[-1]


def test_a_client_that_fails_leaves_no_cluster(monkeypatch):
    clusters = []

    def fails(cluster, **options):
        clusters.append(cluster)
        raise OSError("no connection")

    monkeypatch.setattr(_start, "_client_class", lambda: fails)
    with pytest.raises(OSError, match="no connection"):
        local_cluster(1, processes=False)
    assert [cluster.status.name for cluster in clusters] == ["closed"]


def test_to_let_go_of_a_closed_client_takes_no_lock():
    client = local_cluster(1, processes=False)
    client.close()
    # The garbage collector may come while Dask holds this.
    with LoopRunner._lock:
        done = threading.Thread(target=client.__del__, daemon=True)
        done.start()
        done.join(5)
    assert not done.is_alive()
