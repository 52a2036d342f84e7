"""The commands and the code of docs/clusters.md, run as real processes: a cluster by hand, and one by TLS."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from contextlib import ExitStack, chdir, redirect_stdout
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed import Client

from manyfit.cluster import _describe, describe
from manyfit.cluster import _local_cluster as _start
from manyfit.cluster.inspection import gpu_workers as _gpu_workers
from tests.cluster._processes import ROOT, blocks, running, wait_for

pytestmark = pytest.mark.thorough

PAGE = (ROOT / "docs" / "clusters.md").read_text()
SECTIONS = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])
# The page's scheduler, which is at another address here.
THEIRS = "10.0.0.5:8786"


def commands(section: str) -> list[str]:
    return [line for block in blocks(SECTIONS[section], "sh") for line in block.splitlines()]


def of_kind(kind: str, section: str) -> list[str]:
    return [line for line in commands(section) if f"dask {kind} " in f" {line} "]


def scheduler(stack: ExitStack, command: str, folder: Path) -> str:
    """Run a scheduler as the page does, on a free port of this machine; its address without the protocol."""
    file = folder / "scheduler.json"
    here = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"]
    process = stack.enter_context(running(command, folder, *here, "--scheduler-file", str(file)))

    def address() -> str | None:
        assert process.poll() is None, process.stderr.read()
        try:
            return json.loads(file.read_text())["address"].partition("://")[2]
        except (FileNotFoundError, ValueError):  # not there, or half written
            return None

    return wait_for(address, "the scheduler")


def worker(
    stack: ExitStack, command: str, folder: Path, address: str, **environment: str
) -> subprocess.Popen:
    """Run a worker as the page does, with as many threads of BLAS as it comes to by itself."""
    assert THEIRS in command
    here = ["--host=127.0.0.1", f"--local-directory={folder}", "--no-dashboard", "--death-timeout=120"]
    with pytest.MonkeyPatch.context() as patch:
        for name in _start.THREAD_VARIABLES:
            patch.delenv(name, raising=False)
        return stack.enter_context(running(command.replace(THEIRS, address), folder, *here, **environment))


def run(code: str, address: str, workers: int) -> SimpleNamespace:
    """Run code of the page that connects a client, and wait for workers; its names, and what it prints."""
    names: dict = {}
    printed = StringIO()
    with redirect_stdout(printed):
        exec(code.replace(THEIRS, address), names)
    names["client"].wait_for_workers(workers, timeout=120)
    return SimpleNamespace(**names, printed=printed.getvalue())


# By hand


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    """A scheduler, two workers, and one with the resource of a GPU, which has another scikit-learn."""
    folder = tmp_path_factory.mktemp("by_hand")
    other = folder / "other" / "scikit_learn-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: scikit-learn\nVersion: 0.1\n")
    with ExitStack() as stack:
        address = scheduler(stack, *of_kind("scheduler", "By hand"), folder)
        plain, with_gpu = of_kind("worker", "By hand")
        first = worker(stack, plain, folder, address)
        second = worker(stack, with_gpu, folder, address, PYTHONPATH=str(other.parent))
        stack.callback(lambda: [process.terminate() for process in (first, second)])  # both at the same time
        (code,) = blocks(SECTIONS["By hand"], "py")
        done = run(code, address, 3)
        stack.callback(done.client.close)
        yield done


def test_the_page_has_the_commands_that_are_run():
    assert [len(of_kind(kind, "By hand")) for kind in ("scheduler", "worker", "cuda")] == [1, 2, 1]
    assert [len(of_kind(kind, "TLS")) for kind in ("scheduler", "worker")] == [1, 2]
    assert sum(len(commands(section)) for section in SECTIONS) == 7
    assert sum(len(blocks(SECTIONS[section], "py")) for section in ("By hand", "TLS")) == 3


@pytest.mark.invariant("The commands on the page about clusters work")
def test_workers_by_hand(by_hand):
    cluster = describe(by_hand.client)
    found = sorted((w.device or "CPU", w.host, w.threads, w.slots) for w in cluster.workers)
    assert found == [("CPU", "127.0.0.1", 1, 1)] * 2 + [("GPU", "127.0.0.1", 1, 1)]
    assert cluster.slots == 3
    assert by_hand.printed.startswith(f"Cluster at {cluster.address}: 3 workers, 3 slots\n")


def test_another_version_is_named(by_hand):
    cluster = describe(by_hand.client)
    (gpu,) = [w for w in cluster.workers if w.device]
    (line,) = cluster.differences
    assert line == f"scikit-learn is 0.1 on worker {gpu.name}, and {version('scikit-learn')} here"
    assert line in by_hand.printed


def test_work_for_a_gpu_goes_to_its_worker(by_hand):
    (gpu,) = [w.address for w in describe(by_hand.client).workers if w.device]
    tasks = by_hand.client.map(lambda i: i, range(6), resources={"GPU": 1}, pure=False)
    assert by_hand.client.gather(tasks) == list(range(6))
    assert set(by_hand.client.who_has(tasks).values()) == {(gpu,)}


def test_each_process_has_one_thread_of_blas(by_hand):
    def threads():
        import numpy  # noqa: F401
        from threadpoolctl import threadpool_info

        return [library["num_threads"] for library in threadpool_info()]

    for found in by_hand.client.run(threads).values():
        assert found and set(found) == {1}


@pytest.mark.gpu
@pytest.mark.skipif(
    find_spec("dask_cuda") is None or not _gpu_workers.gpu_count(), reason="no GPU, or no dask-cuda"
)
def test_dask_cuda_by_hand(tmp_path):
    with ExitStack() as stack:
        address = scheduler(stack, *of_kind("scheduler", "By hand"), tmp_path)
        worker(stack, *of_kind("cuda", "By hand"), tmp_path, address)
        client = stack.enter_context(Client(f"tcp://{address}"))
        client.wait_for_workers(_gpu_workers.gpu_count(), timeout=120)
        for one in describe(client).workers:
            assert one.slots == 1 and one.device not in (None, "GPU") and one.device_memory > 2**30


def test_a_scheduler_that_goes_away(tmp_path, monkeypatch):
    monkeypatch.setattr(_describe, "TIMEOUT_S", 2.0)
    with ExitStack() as stack:
        alone = stack.enter_context(ExitStack())
        address = scheduler(alone, *of_kind("scheduler", "By hand"), tmp_path)
        client = stack.enter_context(Client(f"tcp://{address}"))
        assert describe(client).workers == ()
        alone.close()
        start = time.monotonic()
        with pytest.raises(ConnectionError, match="does not answer"):
            describe(client)
        assert time.monotonic() - start < 30


# TLS


@pytest.fixture(scope="module")
def by_tls(tmp_path_factory):
    """A scheduler and two workers with the page's certificate: by options, and by a file of configuration."""
    folder = tmp_path_factory.mktemp("by_tls")
    make, connect = blocks(SECTIONS["TLS"], "py")
    (settings,) = blocks(SECTIONS["TLS"], "yaml")
    configuration = folder / "configuration"
    configuration.mkdir()
    (configuration / "dask.yaml").write_text(settings)
    with ExitStack() as stack, chdir(folder):
        exec(make, {})
        address = scheduler(stack, *of_kind("scheduler", "TLS"), folder)
        by_options, by_file = of_kind("worker", "TLS")
        assert "--tls-" in by_options and "--tls-" not in by_file
        first = worker(stack, by_options, folder, address)
        second = worker(stack, by_file, folder, address, DASK_CONFIG=str(configuration))
        stack.callback(lambda: [process.terminate() for process in (first, second)])
        done = run(connect, address, 2)
        stack.callback(done.client.close)
        done.folder, done.address = folder, address
        yield done


@pytest.mark.invariant("The commands on the page about clusters work")
def test_workers_by_tls(by_tls):
    cluster = describe(by_tls.client)
    nannies = [info["nanny"] for info in by_tls.client.scheduler_info()["workers"].values()]
    addresses = [cluster.address, *(w.address for w in cluster.workers), *nannies]
    assert [address.partition("://")[0] for address in addresses] == ["tls"] * 5
    # The workers talk to each other.
    one, two = (w.address for w in cluster.workers)
    first = by_tls.client.submit(lambda: [1, 2, 3], workers=[one])
    assert by_tls.client.submit(sum, first, workers=[two]).result() == 6


def test_the_key_is_for_its_owner_only(by_tls):
    assert stat.S_IMODE(os.stat(by_tls.folder / "dask-key.pem").st_mode) == 0o600


# Whole clients, a process each: what is left of one that fails is closed when it is collected, in any thread.
REFUSED = """
import sys
from distributed import Client, Security

address, security = sys.argv[1], Security.temporary() if sys.argv[2] == "other" else None
try:
    Client(address, security=security, timeout=10)
except (OSError, TypeError) as error:
    print("refused:", type(error).__name__, error)
"""


@pytest.mark.invariant("A cluster with TLS refuses connections without its certificate")
def test_clients_without_the_certificate_are_refused(by_tls):
    cases = {("tls", "none"): "TypeError", ("tls", "other"): "FatalCommClosedError", ("tcp", "none"): ""}
    start = time.monotonic()
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", REFUSED, f"{protocol}://{by_tls.address}", security],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for protocol, security in cases
    ]
    for client, error in zip(clients, cases.values(), strict=True):
        assert f"refused: {error}" in client.communicate(timeout=120)[0]
    assert time.monotonic() - start < 60
    assert by_tls.client.submit(lambda: 8).result() == 8
