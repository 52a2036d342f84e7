"""Counts and numbers of bytes as text, and the memory of this machine; Dask may be missing."""

import os
import re

_FACTORS = {"": 1, "b": 1}
_FACTORS |= {f"{unit}{end}".lower(): 1000 ** (i + 1) for i, unit in enumerate("kMGTPE") for end in ("", "B")}
_FACTORS |= {
    f"{unit}{end}".lower(): 1024 ** (i + 1) for i, unit in enumerate("kMGTPE") for end in ("i", "iB")
}
_SIZE = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)?\s*([a-z]*)", re.IGNORECASE)


def parse_size(text: str) -> int:
    """The number of bytes in a text such as "512MB", "1.5 GiB" or "1e9"; ValueError for any other text."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or not text.strip() or found[2].lower() not in _FACTORS:
        raise ValueError(f"{text!r} is not a number of bytes, such as '512MB' or '2 GiB'")
    return int(float(found[1] or 1) * _FACTORS[found[2].lower()])


def format_size(n_bytes: float) -> str:
    """A number of bytes in the largest unit of which it has nearly one, such as "1.86 GiB"."""
    for i, unit in reversed(list(enumerate("kMGTP"))):
        if n_bytes >= 0.9 * 1024 ** (i + 1):
            return f"{n_bytes / 1024 ** (i + 1):.2f} {unit}iB"
    return f"{n_bytes} B"


def format_count(n: int, what: str) -> str:
    """A number of things, such as "1 fit" or "3 fits"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def machine_memory() -> int:
    """The bytes of memory that this process may use: the machine's, or the limit of its container.

    distributed knows the limits of containers. Without it, this is the memory of the machine.
    """
    try:
        from distributed.system import MEMORY_LIMIT
    except ImportError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(MEMORY_LIMIT)
