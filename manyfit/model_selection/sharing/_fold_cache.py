"""What the settings of one fold have in common: known arrays, and a cache of fitted transformers.

An estimator may write into the array it is given. What is lent is therefore protected: an ndarray as a
read-only view, a sparse matrix with read-only parts, a DataFrame as a copy-on-write copy of read-only
memory. An estimator that insists on writing raises, and the caller fits that setting alone. Arrays of other
libraries cannot be protected: they are lent only among estimators that are known to leave them as they are.
"""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import scipy.sparse
from sklearn import get_config

from manyfit.arrays import is_xp_array, numpy_dtype
from manyfit.introspection.structural_key import Unkeyable, Wrapped, structural_key
from manyfit.model_selection.job._rowwise_prefix import FoldRowwise
from manyfit.model_selection.sharing._failed_fits import FailedFits
from manyfit.model_selection.sharing._frame_copy import pandas_copy

__all__ = ["CacheEntry", "FoldCache", "lendable", "protectable", "read_only_view"]

T = TypeVar("T")
SPARSE_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "coords"),
    "dia": ("data", "offsets"),
}


def frame_kind(X: Any) -> str | None:
    """ "pandas" or "polars" for their frames and series; neither library is imported here."""
    for library in ("pandas", "polars"):
        module = sys.modules.get(library)
        if module is not None and isinstance(X, (module.DataFrame, module.Series)):
            return library
    return None


def is_array(X: Any) -> bool:
    return type(X) in (np.ndarray, np.memmap)  # a view of another subclass may not be what it was


def is_sparse(X: Any) -> bool:
    return scipy.sparse.issparse(X) and X.format in SPARSE_PARTS


def _is_one(X: Any) -> bool:
    """Whether the same object is lent each time."""
    return is_array(X) or is_xp_array(X)


def protectable(X: Any) -> bool:
    """Whether :func:`read_only_view` can hand out `X` without letting it be changed."""
    return is_array(X) or is_sparse(X) or frame_kind(X) is not None


def lendable(X: Any) -> bool:
    """Whether rows of `X` can be lent to several fits, each of which finds them as they were.

    Of a list each fit gets a copy with the same items, as scikit-learn's fits have the items in common.
    """
    return X is None or protectable(X) or isinstance(X, (list, tuple, range))


def _read_only(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(_read_only, part))
    view = part.view()
    view.flags.writeable = False
    return view


def _copy_on_write() -> bool:
    pandas = sys.modules["pandas"]
    return int(pandas.__version__.split(".")[0]) >= 3 or pandas.options.mode.copy_on_write is True


def read_only_view(X: T) -> T:
    """Something to hand to foreign code in place of `X`, which it cannot change; `X` itself if there is none.

    A list is copied, but not what is in it, as scikit-learn does for each fit. Else this costs no copy of the
    data, except for pandas before 3 without copy-on-write.
    """
    if type(X) is list:
        return copy.copy(X)
    if is_array(X):
        return _read_only(X)
    if is_sparse(X):
        lent = copy.copy(X)  # with its flags, so that sorted indices are not looked for again
        for name in SPARSE_PARTS[lent.format]:  # type: ignore[attr-defined]
            setattr(lent, name, _read_only(getattr(X, name)))
        return lent
    kind = frame_kind(X)
    if kind == "pandas":
        return X.copy(deep=False) if _copy_on_write() else pandas_copy(X, bytearray)  # type: ignore
    return X.clone() if kind == "polars" else X  # type: ignore[attr-defined, no-any-return]


def _lock(X: np.ndarray) -> None:
    """Make the memory under an array read-only for good: no view of it can be made writeable again."""
    while isinstance(X.base, np.ndarray):
        X = X.base
    X.flags.writeable = False


def _lock_frame(frame: Any) -> None:
    """scikit-learn (check_array, force_writeable) takes the read-only array that pandas shows of a frame
    and makes it writeable, unless the memory itself is read-only: then it copies."""
    if frame.ndim == 1:
        if isinstance(frame.dtype, np.dtype):
            _lock(frame.to_numpy())
        return
    kinds = list(frame.dtypes)
    if kinds and isinstance(kinds[0], np.dtype) and len(set(kinds)) == 1:
        whole = frame.to_numpy()
        if np.may_share_memory(whole, frame.iloc[:, 0].to_numpy()):  # one block of memory
            _lock(whole)
            return
    for j in range(len(kinds)):
        _lock_frame(frame.iloc[:, j])


def private_copy(X: T) -> T:
    """What the cache may keep of a result: for pandas a copy of its own; in read-only memory, if shared."""
    if frame_kind(X) != "pandas":
        return X
    if not _copy_on_write():
        return pandas_copy(X, bytearray)  # type: ignore[no-any-return]
    kept = pandas_copy(X, bytes)
    _lock_frame(kept)  # what was not copied by pickling
    return kept  # type: ignore[no-any-return]


def content_key(X: Any) -> Hashable | None:
    """A key by content, or None if there is none: arrays of other libraries stay where they are."""
    known = X is None or isinstance(X, (np.ndarray, str, bytes, list, tuple, int, float, range))
    if not known and not scipy.sparse.issparse(X) and frame_kind(X) is None:
        return None
    try:
        return structural_key(X, by_identity=False)
    except Unkeyable:  # a subclass of an array, or whatever is in a list
        return None


def nbytes_of(X: Any) -> int:
    """Bytes of an array of any library; some have dtypes that NumPy has not, of at most 8 bytes."""
    try:
        return math.prod(X.shape) * numpy_dtype(X).itemsize
    except TypeError:
        return math.prod(X.shape) * 8


def _memory(X: Any, depth: int = 0) -> Iterator[tuple[int, int]]:
    """(identity, bytes) of each piece of memory in a result or a fitted transformer."""
    if isinstance(X, np.ndarray):
        while isinstance(X.base, np.ndarray):
            X = X.base
        yield id(X), X.nbytes
    elif is_xp_array(X):
        yield id(X), nbytes_of(X)
    elif is_sparse(X):
        for name in SPARSE_PARTS[X.format]:
            yield from _memory(getattr(X, name), depth + 1)
    elif (kind := frame_kind(X)) is not None:
        yield id(X), int(np.sum(X.memory_usage())) if kind == "pandas" else X.estimated_size()
    elif depth > 5 or isinstance(X, (Wrapped, type)):
        return  # what is wrapped is counted where it is cached
    elif isinstance(X, (list, tuple, dict)):
        for item in X.values() if isinstance(X, dict) else X:
            yield from _memory(item, depth + 1)
    elif hasattr(X, "__dict__"):
        yield from _memory(vars(X), depth + 1)


@dataclass(eq=False)
class CacheEntry:
    """A fitted transformer, an output, or both."""

    fitted: Any = None
    output: Any = None
    has_output: bool = False
    volatile: bool = False  # keeps a random generator: every setting gets its own copy
    fits: int = 0  # of transformers, that each use of it saves
    memory: dict[int, int] = field(default_factory=dict)


class FoldCache:
    """What the settings fitted on one fold share: fitted transformers and their outputs.

    Parameters
    ----------
    memory_limit : int or None
        Bytes of cached outputs and fitted arrays; the least recently used are dropped. None: no limit.
    there : bool
        Whether arrays of other libraries than NumPy are lent, too, as they are.

    Attributes
    ----------
    fits : int
        Fits of transformers really done. A Pipeline, ColumnTransformer or FeatureUnion is not counted, what
        is inside is.
    saved : int
        Fits of transformers, counted likewise, that were not made since the same one had been made.
    repeated : int
        Pieces of work that were done again, since their results did not fit.
    bytes : int
        Memory of what is cached; memory that several entries share counts once, what was lent not at all.

    Notes
    -----
    Every input and output has a *token*, a number that stands for its content: for what was lent or comes out
    of the cache it is known by identity, for other arrays it is found by hashing the content. An identity is
    known through a weak reference that is compared with the object itself, so the identity of an object that
    is gone is never taken for that of another one. The token of an output is the key of the work that made
    it, so it is the same again if the work was dropped and is done again.
    """

    def __init__(self, memory_limit: int | None = None, there: bool = False) -> None:
        self.memory_limit, self._there = memory_limit, there
        self.front: FoldRowwise | None = None  # of steps that are applied to all rows of a search at once
        self.fits = self.saved = self.repeated = 0
        self.failed = FailedFits()
        self._lock = threading.RLock()
        self.clear()

    def clear(self) -> None:
        """Let go of all arrays and fitted transformers; the counts stay."""
        with self._lock:
            self.bytes = 0
            self._numbers: dict[Hashable, int] = {}
            self._names: dict[int, tuple[weakref.ref[Any], int | None]] = {}
            self._lent: dict[int, tuple[weakref.ref[Any], Any, int]] = {}
            self._items: OrderedDict[int, CacheEntry] = OrderedDict()
            self._done: set[int] = set()
            self._held: Counter[int] = Counter()  # how many hold each piece of memory

    # Keys and tokens

    def number(self, *key: Hashable) -> int:
        """A small number for a key: the same for equal keys."""
        with self._lock:
            return self._numbers.setdefault(key, len(self._numbers))

    def work(self, *key: Hashable) -> int:
        """The number of a piece of work under the present configuration of scikit-learn."""
        return self.number("work", *key, tuple(sorted((k, repr(v)) for k, v in get_config().items())))

    def is_known(self, X: Any) -> bool:
        """Whether `X` has a token by identity, or was found to have none."""
        entry = self._names.get(id(X))
        return entry is not None and entry[0]() is X

    def token(self, X: Any) -> int | None:
        """The token of an array, or None if it has none (then nothing that depends on it is shared)."""
        with self._lock:
            if self.is_known(X):
                return self._names[id(X)][1]
        key = content_key(X)
        return None if key is None else self.number("content", key)

    def arguments(self, params: dict[str, Any]) -> Hashable:
        """A key of keyword arguments: arrays by token, other values by structure.

        Raises
        ------
        Unkeyable
            If one of them has no key.
        """
        key = []
        for name, value in sorted(params.items()):
            array = self.is_known(value) or self.lends(value)
            # Other than parameters, they are not copied for each fit, which may draw from them.
            token = self.token(value) if array else structural_key(value, by_identity=False)
            if token is None:
                raise Unkeyable(name)
            key.append((name, array, token))
        return tuple(key)

    def name(self, X: T, token: int | None) -> T:
        """Make `X` known by its identity; with None as token, make known that nothing else is equal to it."""
        names, identity = self._names, id(X)

        def forget(gone: weakref.ref[Any]) -> None:
            entry = names.get(identity)
            if entry is not None and entry[0] is gone:
                names.pop(identity, None)

        with contextlib.suppress(TypeError):  # a list: found by its content
            names[identity] = weakref.ref(X, forget), token
        return X

    # What estimators get

    def lends(self, X: Any) -> bool:
        """Whether `X` can be handed to several fits as it is, or so that none can change it for the next."""
        return protectable(X) or (self._there and is_xp_array(X))

    def lend(self, X: T) -> T:
        """Make an array known, and protect it.

        Parameters
        ----------
        X : object
            Data of the fold. It must not be changed as long as the cache is in use.

        Returns
        -------
        object
            To hand to estimators. For an ndarray the same read-only view each time; for a sparse matrix or a
            frame a new object that shares its memory, for a list a copy: call it once per fit. Anything
            else, and arrays of other libraries, as it is.

        Notes
        -----
        A pandas frame is copied once, to memory of its own; the caller may drop the original.
        """
        if not self.lends(X):
            return read_only_view(X)
        with self._lock:
            if self.is_known(X):  # lent before
                token = self._names[id(X)][1]
                return X if _is_one(X) else self.present(X, token)
            if id(X) not in self._lent or self._lent[id(X)][0]() is not X:
                self._lent[id(X)] = self._take(X)
            _, kept, token = self._lent[id(X)]
        return kept if _is_one(X) else self.present(kept, token)  # type: ignore[no-any-return]

    def _take(self, X: Any) -> tuple[weakref.ref[Any], Any, int]:
        token = self.number("lent", len(self._numbers))
        kept = self.name(read_only_view(X), token) if _is_one(X) else private_copy(X)
        for identity, _ in _memory(kept):
            self._held[identity] += 1  # the caller's memory: never counted
        return weakref.ref(X), kept, token

    def present(self, X: T, token: int | None) -> T:
        """A protected stand-in for `X` that is known by `token`."""
        lent = read_only_view(X)
        if lent is X and (not is_xp_array(X) or self.is_known(X)):
            return X
        return self.name(lent, token)

    # The entries

    def get(self, key: int) -> CacheEntry | None:
        """What is cached under a key, or None."""
        with self._lock:
            item = self._items.get(key)
            if item is not None:
                self._items.move_to_end(key)
            return item

    def put(self, key: int, item: CacheEntry) -> CacheEntry:
        """Cache an item if it fits; the least recently used make room. Returns the one to use."""
        item.memory = dict(_memory([item.fitted, item.output]))
        with self._lock:
            if key in self._items:  # another thread did the same work
                return self._items[key]
            self.repeated += key in self._done
            self._done.add(key)
            if self.memory_limit is not None and self._new_bytes(item) > self.memory_limit:
                return item
            self.bytes += self._new_bytes(item)
            self._held.update(item.memory.keys())
            self._items[key] = item
            while self.memory_limit is not None and self.bytes > self.memory_limit:
                self._drop(next(iter(self._items)))
            return item

    def _new_bytes(self, item: CacheEntry) -> int:
        return sum(size for identity, size in item.memory.items() if not self._held[identity])

    def _drop(self, key: int) -> None:
        item = self._items.pop(key)
        self._held.subtract(item.memory.keys())
        for identity in [i for i in item.memory if self._held[i] <= 0]:
            del self._held[identity]
            self.bytes -= item.memory[identity]

    @property
    def stands_for(self) -> int:
        """Fits of transformers that were asked for: made, or saved."""
        return self.fits + self.saved

    def count_saved(self, n: int) -> None:
        """Count fits that were saved; negative where some of those counted have to be made after all."""
        with self._lock:
            self.saved += n

    def count_fit(self) -> None:
        """Count one more fit."""
        with self._lock:
            self.fits += 1
