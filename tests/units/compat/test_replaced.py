"""A function of a module, replaced in one thread while a block runs."""

import threading
from types import ModuleType

import pytest

from manyfit._compat._replaced import replaced


@pytest.fixture
def module():
    """A module whose function `name` calls its function `part`."""
    made = ModuleType("made")
    exec("def part(x=0):\n    return ('original', x)\ndef name(x=0):\n    return part(x)", vars(made))
    return made


def test_the_code_of_the_module_calls_it_in_the_block(module):
    original = module.part
    with replaced(module, "part", lambda x: ("other", x)):
        assert module.name(3) == ("other", 3)
        with replaced(module, "part", lambda x: ("inner", x)):
            assert module.name(4) == ("inner", 4)
        assert module.name(5) == ("other", 5)
    assert module.name(6) == ("original", 6)
    assert module.part is original


def test_a_block_that_raises_puts_the_original_back(module):
    original = module.part
    with pytest.raises(ZeroDivisionError), replaced(module, "part", lambda x: 1 // x):
        module.name(0)
    assert module.part is original


def test_other_threads_call_the_original_or_their_own(module):
    original, found, entered, leave = module.part, {}, threading.Barrier(3), threading.Barrier(3)

    def run(name):
        with replaced(module, "part", lambda x: (name, x)):
            entered.wait(10)
            found[name] = module.name(1)
            leave.wait(10)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    entered.wait(10)
    assert module.name(1) == ("original", 1)
    assert module.part is not original
    leave.wait(10)
    for thread in threads:
        thread.join(10)
    assert found == {"a": ("a", 1), "b": ("b", 1)}
    assert module.part is original


def test_the_replacement_of_a_replacement_outlives_the_block(module):
    """As a test of a user's may replace a function while a block of another thread runs."""
    with replaced(module, "part", lambda x: ("other", x)):
        module.part = lambda x: ("mine", x)
    assert module.name(2) == ("mine", 2)
