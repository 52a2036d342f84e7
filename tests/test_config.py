"""Options of the process and of a context."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator

import pytest

import manyfit


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = manyfit.get_config()
    yield
    manyfit.set_config(**before)


def in_a_thread(run):
    found = []
    thread = threading.Thread(target=lambda: found.append(run()))
    thread.start()
    thread.join()
    return found[0]


def test_a_context_ends_as_it_began_also_by_an_error():
    before = manyfit.get_config()

    def fails():
        with manyfit.config_context(device="cuda"):
            with manyfit.config_context(host_fallback="error"):
                assert manyfit.get_config() == {"device": "cuda", "host_fallback": "error"}
            assert manyfit.get_config() == {**before, "device": "cuda"}
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert manyfit.get_config() == before


def test_the_process_has_it_in_all_threads_and_a_context_in_one():
    manyfit.set_config(host_fallback="ignore")
    assert in_a_thread(manyfit.get_config)["host_fallback"] == "ignore"
    with manyfit.config_context(host_fallback="error"):
        assert in_a_thread(manyfit.get_config)["host_fallback"] == "ignore"
        inside = contextvars.copy_context()
        assert in_a_thread(lambda: inside.run(manyfit.get_config))["host_fallback"] == "error"


def test_what_a_context_names_keeps_its_value():
    with manyfit.config_context(host_fallback="error"):
        manyfit.set_config(device="cpu", host_fallback="ignore")
        assert manyfit.get_config() == {"device": "cpu", "host_fallback": "error"}
    assert manyfit.get_config() == {"device": "cpu", "host_fallback": "ignore"}


def test_a_copy_is_given():
    manyfit.get_config()["device"] = "cuda"
    assert manyfit.get_config()["device"] == "auto"


@pytest.mark.parametrize(
    "call", [manyfit.set_config, lambda **given: manyfit.config_context(**given).__enter__()]
)
@pytest.mark.parametrize("given", [{"device": "gpu"}, {"device": 0}, {"host_fallback": []}])
def test_another_value_is_refused(call, given):
    before = manyfit.get_config()
    with pytest.raises(ValueError, match=rf"option {next(iter(given))} must be one of '\w+', .*got "):
        call(host_fallback="error", **given) if "device" in given else call(device="cpu", **given)
    assert manyfit.get_config() == before
