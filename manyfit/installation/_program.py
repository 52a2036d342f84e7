"""Run a program as Python does: a script, a module, a text of code, or standard input."""

from __future__ import annotations

import os
import pkgutil
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

_RUNNERS = {__name__, "runpy"}  # modules whose frames come before those of the program


def run_program(command: Sequence[str]) -> None:
    """Run ``script``, ``-m module``, ``-c code`` or ``-``, each with its arguments.

    ``sys.argv``, ``sys.path[0]`` and the module ``__main__`` are those that Python gives a program. An
    exception that ends it is shown without the frames of this module.
    """
    first, *rest = command
    try:
        if first.startswith(("-m", "-c")):
            value, *rest = (first[2:], *rest) if first[2:] else rest
            _run_module(value, rest) if first[1] == "m" else _run_code(value, "-c", rest)
        elif first == "-":
            _run_code(sys.stdin.buffer.read(), "-", rest)
        else:
            _run_script(first, rest)
    except SystemExit:
        raise
    except BaseException as error:
        _show_own_frames(error)
        raise


def _run_module(name: str, arguments: list[str]) -> None:
    sys.argv = [name, *arguments]  # runpy puts the file in place of the name
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except ImportError as error:
        if _own_frames(error) is None:  # the module itself was not found
            sys.exit(f"{sys.executable}: {error}")
        raise


def _run_code(source: str | bytes, name: str, arguments: list[str]) -> None:
    sys.argv = [name, *arguments]
    _set_first_path("")
    if name == "-c":
        exec(compile(source, "<string>", "exec", dont_inherit=True), _new_main())
    else:
        exec(compile(source, "<stdin>", "exec", dont_inherit=True), _new_main(__file__="<stdin>"))


def _run_script(path: str, arguments: list[str]) -> None:
    sys.argv = [path, *arguments]
    file = os.path.abspath(path)
    importer = pkgutil.get_importer(file)
    if importer is not None:
        _run_archive(file, importer)
        return
    if path.endswith(".pyc"):
        _set_first_path(os.path.dirname(file))
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with open(file, "rb") as stream:
            source = stream.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {file!r}: [Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        sys.exit(2)
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    loader = SourceFileLoader("__main__", file)
    exec(compile(source, file, "exec", dont_inherit=True), _new_main(__file__=file, __loader__=loader))


def _run_archive(path: str, importer: Any) -> None:
    """Run the module ``__main__`` of a folder or an archive."""
    spec = importer.find_spec("__main__")
    if spec is None:
        sys.exit(f"{sys.executable}: can't find '__main__' module in {path!r}")
    _set_first_path(path)
    loader = spec.loader
    names = {"__file__": spec.origin, "__loader__": loader, "__spec__": spec, "__package__": ""}
    exec(loader.get_code("__main__"), _new_main(**names))


def _new_main(**attributes: Any) -> dict[str, Any]:
    """The names of a new module ``__main__``, which stays there, as functions of the program expect."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    vars(main).update(__builtins__=sys.modules["builtins"], __annotations__={}, **attributes)
    return vars(main)


def _set_first_path(path: str) -> None:
    """Put a path in place of the working directory, with which ``python -m`` begins ``sys.path``."""
    if sys.flags.safe_path:
        return
    if sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]
    sys.path.insert(0, path)


def _own_frames(error: BaseException) -> Any:
    """The traceback of an exception from the first frame of the program on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _RUNNERS:
        trace = trace.tb_next
    return trace


def _show_own_frames(error: BaseException) -> None:
    """Let Python, which ends with an exception, show its frames in the program only."""
    trace, hook = _own_frames(error), sys.excepthook
    sys.excepthook = lambda kind, value, _: hook(kind, value.with_traceback(trace), trace)
