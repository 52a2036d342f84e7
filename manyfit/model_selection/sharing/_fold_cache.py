"""The cache of one fold: known arrays, fitted transformers and their outputs."""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from manyfit.arrays import is_xp_array, memory_owner, numpy_dtype
from manyfit.folds import Unsupported
from manyfit.introspection.object_state import Unkeyable, Wrapped
from manyfit.introspection.structural_key import structural_key
from manyfit.model_selection.job._fold_rowwise import FoldRowwise
from manyfit.model_selection.job._rowwise_prefix import config_key
from manyfit.model_selection.sharing.nested import NestedRequests
from manyfit.model_selection.sharing.rows._read_only import (
    SPARSE_PARTS,
    frame_kind,
    is_numpy_array,
    is_protectable,
    is_sparse_matrix,
    private_copy,
    read_only_view,
)

T = TypeVar("T")


@dataclass(eq=False)
class CacheEntry:
    """A fitted transformer, an output, or both."""

    fitted: Any = None
    output: Any = None
    has_output: bool = False
    volatile: bool = False  # it holds a random generator: every setting gets its own copy
    fits: int = 0  # fits of transformers that each use of it saves
    memory: dict[int, int] = field(default_factory=dict)


class FoldCache:
    """Fitted transformers and outputs that the settings of one fold share.

    A *token* stands for the content of an array: of cached arrays by identity, of others by a hash, of an
    output by the work that made it. The least recently used entries beyond `memory_limit` bytes are dropped.
    """

    def __init__(self, memory_limit: int | None = None, device_arrays: bool = False) -> None:
        # Arrays of other libraries than NumPy are shared, unprotected, with `device_arrays`.
        self.memory_limit, self._device_arrays = memory_limit, device_arrays
        self.rowwise: FoldRowwise | None = None  # of steps that transform all rows of a search at once
        self.requests: NestedRequests | None = None  # of the settings that read this cache
        # Fits of transformers (parts of composites), fits saved, and work repeated after drops.
        self.fits = self.saved = self.repeated = 0
        self._unasked = 0  # fits that were made, or counted as saved, for no setting yet
        self._failed: dict[int, str] = {}
        self._lock = threading.RLock()
        self.bytes = 0  # shared memory counts once, memory of the fold's own rows not at all
        self._numbers: dict[Hashable, int] = {}
        self._tokens: dict[int, tuple[weakref.ref[Any], int | None]] = {}
        self._lent: dict[int, tuple[weakref.ref[Any], Any, int]] = {}
        self._entries: OrderedDict[int, CacheEntry] = OrderedDict()
        self._done: set[int] = set()
        self._held: Counter[int] = Counter()  # how many entries hold each piece of memory

    # Keys and tokens

    def number(self, *key: Hashable) -> int:
        """A small number for a key: the same for equal keys."""
        with self._lock:
            return self._numbers.setdefault(key, len(self._numbers))

    def work_key(self, *key: Hashable) -> int:
        """The number of a piece of work under the current configuration of scikit-learn."""
        return self.number("work", *key, config_key())

    def is_known(self, X: Any) -> bool:
        """Whether `X` was registered, with a token or without."""
        entry = self._tokens.get(id(X))
        return entry is not None and entry[0]() is X

    def token(self, X: Any) -> int | None:
        """The token of an array; None if it has none, so that nothing that depends on it is shared."""
        with self._lock:
            if self.is_known(X):
                return self._tokens[id(X)][1]
        try:
            return self.number("content", structural_key(X, by_identity=False))
        except Unkeyable:  # an array of another library, say, which is not read for that
            return None

    def params_key(self, params: dict[str, Any]) -> Hashable:
        """A key of keyword arguments: arrays by token, other values by structure; else `Unkeyable`."""
        key = []
        for name, value in sorted(params.items()):
            is_data = self.is_known(value) or self.can_share(value)
            # Unlike constructor parameters, they are not copied for each fit, which may draw from them.
            token = self.token(value) if is_data else structural_key(value, by_identity=False)
            if token is None:
                raise Unkeyable(name)
            key.append((name, is_data, token))
        return tuple(key)

    def register(self, X: T, token: int | None) -> T:
        """Make `X` known by its identity; without a token it is known to be equal to nothing else."""
        tokens, identity = self._tokens, id(X)

        def forget(reference: weakref.ref[Any]) -> None:
            entry = tokens.get(identity)
            if entry is not None and entry[0] is reference:
                tokens.pop(identity, None)

        with contextlib.suppress(TypeError):  # a list, which is known by its content
            tokens[identity] = weakref.ref(X, forget), token
        return X

    def register_copy(self, copied: T, X: Any) -> T:
        """Make a copy of `X` known by the token of `X`, if `X` is known."""
        return self.register(copied, self.token(X)) if copied is not X and self.is_known(X) else copied

    # Arrays for estimators

    def can_share(self, X: Any) -> bool:
        """Whether several fits can be given `X`, as it is or protected."""
        return is_protectable(X) or (self._device_arrays and is_xp_array(X))

    def share(self, X: T) -> T:
        """Register data of the fold, and return it protected, to be passed to estimators once a fit.

        An array gives the same view each time, a sparse matrix or frame a new object on the same memory, a
        list a copy. `X` must not change meanwhile.
        """
        if not self.can_share(X):
            return read_only_view(X)
        with self._lock:
            if self.is_known(X):  # lent before
                token = self._tokens[id(X)][1]
                return X if _is_lent_as_one(X) else self.protected(X, token)
            if id(X) not in self._lent or self._lent[id(X)][0]() is not X:
                self._lent[id(X)] = self._protect(X)
            _, protected, token = self._lent[id(X)]
        return protected if _is_lent_as_one(X) else self.protected(protected, token)  # type: ignore[no-any-return]

    def _protect(self, X: Any) -> tuple[weakref.ref[Any], Any, int]:
        token = self.number("shared rows", len(self._numbers))
        protected = self.register(read_only_view(X), token) if _is_lent_as_one(X) else private_copy(X)
        for identity, _ in _memory(protected):
            self._held[identity] += 1  # the caller's memory never counts
        return weakref.ref(X), protected, token

    def protected(self, X: T, token: int | None) -> T:
        """A read-only view of `X` that is registered under `token`."""
        view = read_only_view(X)
        if view is X and (not is_xp_array(X) or self.is_known(X)):
            return X
        return self.register(view, token)

    # Entries

    @contextlib.contextmanager
    def noting_failure(self, key: int) -> Iterator[None]:
        """Remember `key` if the block raises; raise `Unsupported` if it did before.

        scikit-learn fits the settings that need a step whose fit failed, without another try.
        """
        if key in self._failed:
            raise Unsupported(f"shared work failed ({self._failed[key]})")
        try:
            yield
        except Exception as error:
            self._failed[key] = type(error).__name__
            raise

    def get(self, key: int) -> CacheEntry | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def is_new(self, key: int) -> bool:
        """Whether the work under a key was neither done nor tried before."""
        return key not in self._done and key not in self._failed

    def put(self, key: int, entry: CacheEntry) -> CacheEntry:
        """Store an entry if it fits, and return the one to use: another thread may have stored it before."""
        entry.memory = dict(_memory([entry.fitted, entry.output]))
        with self._lock:
            if key in self._entries:
                return self._entries[key]
            self.repeated += key in self._done
            self._done.add(key)
            if self.memory_limit is not None and self._new_bytes(entry) > self.memory_limit:
                return entry
            self.bytes += self._new_bytes(entry)
            self._held.update(entry.memory.keys())
            self._entries[key] = entry
            while self.memory_limit is not None and self.bytes > self.memory_limit:
                self._drop(next(iter(self._entries)))
            return entry

    def _new_bytes(self, entry: CacheEntry) -> int:
        return sum(size for identity, size in entry.memory.items() if not self._held[identity])

    def _drop(self, key: int) -> None:
        entry = self._entries.pop(key)
        self._held.subtract(entry.memory.keys())
        for identity in [i for i in entry.memory if self._held[i] <= 0]:
            del self._held[identity]
            self.bytes -= entry.memory[identity]

    def drop_entries(self) -> None:
        """Drop all fitted transformers and outputs; those that are read again are made again."""
        with self._lock:
            self._done.difference_update(self._entries)
            for key in list(self._entries):
                self._drop(key)

    # Counts

    @property
    def fits_requested(self) -> int:
        """Fits of transformers that settings asked for: made or saved."""
        return self.fits + self.saved - self._unasked

    @property
    def counts(self) -> Counter[str]:
        """The counts under the names that `Report` has for them."""
        return Counter(
            transformer_fits=self.fits, transformer_fits_saved=self.saved, steps_repeated=self.repeated
        )

    def count_saved(self, n: int) -> None:
        """Count `n` fits that a setting asked for, and that were made before."""
        with self._lock:
            known = min(n, self._unasked)
            self._unasked -= known
            self.saved += n - known

    def count_answered(self, n: int, requested: int, saved: int) -> None:
        """Count what was requested since these counts, as if by one setting, for the `n` that it answered.

        If it answered none, the fits that it made remain. The next setting that asks for one of them makes it
        count; if scikit-learn's own function fits all that are left, none does, and nothing was saved.
        """
        if n:
            self.count_saved((n - 1) * (self.fits_requested - requested))
            return
        with self._lock:
            self.saved = saved
            self._unasked = self.fits + saved - requested

    def count_fit(self) -> None:
        with self._lock:
            self.fits += 1


def nbytes_of(X: Any) -> int:
    """Bytes of an array of any library; 8 for each element of a dtype that NumPy does not have."""
    try:
        return math.prod(X.shape) * numpy_dtype(X).itemsize
    except TypeError:
        return math.prod(X.shape) * 8


def _is_lent_as_one(X: Any) -> bool:
    """Whether the same object is lent each time."""
    return is_numpy_array(X) or is_xp_array(X)


def _memory(X: Any, depth: int = 0) -> Iterator[tuple[int, int]]:
    """(identity, bytes) of each piece of memory in an output or a fitted transformer."""
    if isinstance(X, np.ndarray):
        owner = memory_owner(X)
        yield id(owner), owner.nbytes
    elif is_xp_array(X):
        yield id(X), nbytes_of(X)
    elif is_sparse_matrix(X):
        for name in SPARSE_PARTS[X.format]:
            yield from _memory(getattr(X, name), depth + 1)
    elif (kind := frame_kind(X)) is not None:
        yield id(X), int(np.sum(X.memory_usage())) if kind == "pandas" else X.estimated_size()
    elif depth > 5 or isinstance(X, (Wrapped, type)):
        return  # a wrapped transformer counts in its own entry
    elif isinstance(X, (list, tuple, dict)):
        for item in X.values() if isinstance(X, dict) else X:
            yield from _memory(item, depth + 1)
    elif hasattr(X, "__dict__"):
        yield from _memory(vars(X), depth + 1)
