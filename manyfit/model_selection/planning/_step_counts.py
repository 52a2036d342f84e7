"""Counts the fits of transformers in a plan: each step once a split for all settings that share it."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from manyfit.introspection.composites import build_setting, children, composite_class
from manyfit.introspection.randomness import Sizes, is_deterministic
from manyfit.introspection.structural_key import Unkeyable, structural_key
from manyfit.model_selection.planning._pieces import cut_into_pieces
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.sharing._fold_store import retained_folds
from manyfit.model_selection.sharing.nested import nested_key, nested_rule

Key = Hashable
_UNKNOWN = Sizes()


@dataclass(frozen=True)
class _Fits:
    """Keys of the transformer fits of one setting: those of each split, and those of all rows at once."""

    of_split: tuple[Key, ...] = ()
    once: tuple[Key, ...] = ()


@dataclass(frozen=True)
class _NestedFit:
    """The key of a fit that serves every value of some parameters; `values` has those of one setting."""

    key: Key
    name: str
    values: Mapping[str, str] = field(compare=False)


class StepCounts:
    """Counts the transformer fits of settings that share steps.

    The first step that draws is fitted for each setting, and so is every step behind it.
    """

    def __init__(self, facts: SearchFacts, chains: Sequence[PipelineSpec | str], n_workers: int) -> None:
        self._job, self._facts, self._chains, self._n_workers = facts.job, facts, chains, n_workers

    def counted(
        self, groups: Sequence[Group], order: Sequence[Any] | None, by_candidate: bool
    ) -> list[Group]:
        """The groups with their `transformer_fits`; a fit counts in the first group that needs it."""
        if order is None:
            # Without a step that can be shared, families still fit steps of their own once a split.
            order, by_candidate = [()] * len(self._chains), False
            groups_ = [group for group in groups if _is_family_behind_steps(group)]
        else:
            groups_ = [group for group in groups if group.strategy.shares_steps]
        fits = {c: self._fits_or_none(c) for group in groups_ for c in group.candidates}
        where = {c: j for j, group in enumerate(groups_) for c in group.candidates}
        found, made_once = Counter[int](), set[Key]()
        for c in sorted(fits, key=lambda c: (where[c], c)):
            for key in fits[c].once:
                found[where[c]] += key not in made_once
                made_once.add(key)
        for candidates, n_splits in self._tasks(groups_, order, by_candidate):
            made = set[Key]()
            for c in sorted(candidates, key=lambda c: (where[c], c)):
                new = set(fits[c].of_split) - made
                found[where[c]] += n_splits * len(new)
                made |= new
        counts = {id(group): found[j] for j, group in enumerate(groups_)}
        nested = _nested_texts(fits)
        return [
            replace(
                group,
                transformer_fits=counts.get(id(group), 0),
                nested=tuple(dict.fromkeys(text for c in group.candidates for text in nested.get(c, ()))),
            )
            for group in groups
        ]

    def _tasks(
        self, groups: Sequence[Group], order: Sequence[Any], by_candidate: bool
    ) -> Iterator[tuple[Sequence[int], int]]:
        """Settings that are fitted on one fold in memory, and on how many splits."""
        families = [c for group in groups if _is_family_behind_steps(group) for c in group.candidates]
        rest = [c for group in groups if not group.strategy.shares_fits for c in group.candidates]
        k = self._job.splits.n_splits
        if self._n_workers > 1:
            yield families, k
            for _, candidates in cut_into_pieces(self._job.pairs(sorted(rest)), order, self._n_workers):
                yield candidates, 1
            return
        n_retained = retained_folds(self._job.X, k, self._job.options.memory_limit) if by_candidate else k
        if n_retained == k:
            yield [*families, *rest], k
            return
        # Setting by setting, all retained folds but the last are found again.
        yield [*families, *rest], n_retained - 1
        yield families, k - n_retained + 1
        yield from (([c], k - n_retained + 1) for c in rest)

    def _fits_or_none(self, c: int) -> _Fits:
        try:
            return self._fits(c)
        except Exception:  # of a setting that cannot be applied, or of parts that a fit refuses
            return _Fits()

    def _fits(self, c: int) -> _Fits:
        chain = self._chains[c] if self._chains else ""
        if not isinstance(chain, PipelineSpec):
            model = build_setting(self._job.estimator, self._job.candidates[c])
            return _Fits(tuple(_last_step_keys(model, (), c)))
        facts = self._facts
        n_once, drawing = facts.n_rowwise_steps(chain), facts.drawing.first(chain)
        tokens, source = facts.tokens_key(chain), ()  # type: Key | None, Key
        found: tuple[list[Key], list[Key]] = ([], [])
        for j, (one, sizes) in enumerate(facts.drawing.sized_steps(chain.steps)):
            if j == drawing and not _holds_parts(one):  # of parts some may draw, and others not
                source = (source, c)
            fits, source = _step_keys(one, source, c, sizes)
            if j == 0 and tokens is not None:
                n_once, fits = 1, [("tokens", tokens)]
            found[j < n_once].extend(fits)
        found[0].extend(_last_step_keys(chain.final.build(), source, c))
        return _Fits(tuple(found[0]), tuple(found[1]))


def _nested_texts(fits: Mapping[int, _Fits]) -> dict[int, list[str]]:
    """For each setting the steps of which a fit serves several values, in words."""
    values, texts = defaultdict[_NestedFit, set[tuple[str, str]]](set), defaultdict[int, list[str]](list)
    found = [(c, key) for c, of_one in fits.items() for key in of_one.of_split if isinstance(key, _NestedFit)]
    for _, key in found:
        values[key].update(key.values.items())
    for c, key in found:
        counts = Counter(param for param, _ in values[key])
        varied = [param for param in key.values if counts[param] > 1]
        if varied:
            texts[c].append(f"{key.name} serves every {' and '.join(varied)}")
    return texts


def _is_family_behind_steps(group: Group) -> bool:
    return group.strategy.shares_steps and group.strategy.shares_fits


def _step_keys(step: Any, source: Key, own: int, sizes: Sizes = _UNKNOWN) -> tuple[list[Key], Key]:
    """Keys of the fits of a step of a pipeline, and of its output.

    `own` is the setting: steps that draw are fitted for it anew, and so is every step behind them.
    """
    if step is None or isinstance(step, str):
        return [], source
    fits: list[Key] = []
    if composite_class(step) is Pipeline and step.memory is None:
        for child in children(step):
            more, source = _step_keys(child.estimator, source, own)
            fits += more
        return fits, source
    output = (source, _key(step, own))
    if not _holds_parts(step):
        return [_fit_key(step, output, sizes)], output
    for one, columns in _parts(step):
        fits += _step_keys(one, (source, columns), own)[0]
    return fits, output


def _fit_key(step: Any, output: tuple[Key, Key], sizes: Sizes) -> Key:
    """The key of the fit of a step with a key of its output, for input of some sizes."""
    rule = nested_rule(step)
    try:
        alike = nested_key(step) if is_deterministic(step) is not False else None
    except (Unkeyable, RecursionError):
        alike = None
    if rule is None or alike is None or not rule.nests(step, sizes):
        return output
    values = {param: repr(getattr(step, param)) for param in rule.params}
    return _NestedFit((output[0], alike), type(step).__name__, values)


def _holds_parts(step: Any) -> bool:
    return composite_class(step) in (FeatureUnion, ColumnTransformer)


def _parts(step: Any) -> Iterator[tuple[Any, Key]]:
    """The parts of a step that works side by side, and a key of the columns of each."""
    parts = children(step)
    if composite_class(step) is FeatureUnion:
        yield from ((part.estimator, ()) for part in parts)
        return
    *branches, remainder = parts
    for part in branches:
        if not (isinstance(part.columns, list) and not part.columns):
            yield part.estimator, _key(part.columns, 0)
    yield remainder.estimator, ("remainder", _key([part.columns for part in branches], 0))


def _last_step_keys(estimator: Any, source: Key, own: int) -> Iterator[Key]:
    """Keys of the fits of transformers inside of an estimator that predicts."""
    kind = composite_class(estimator)
    if kind is TransformedTargetRegressor:
        others = {name: v for name, v in estimator.get_params(deep=False).items() if name != "regressor"}
        yield from _last_step_keys(estimator.regressor, (source, _key(others, own)), own)
    elif kind is Pipeline and estimator.memory is None:
        *before, last = [child.estimator for child in children(estimator)]
        for step in before:
            fits, source = _step_keys(step, source, own)
            yield from fits
        yield from _last_step_keys(last, source, own)


def _key(thing: Any, own: int) -> Key:
    try:
        if not hasattr(thing, "fit") or is_deterministic(thing) is not False:
            return structural_key(thing)
    except (Unkeyable, RecursionError):
        pass
    return own, id(thing)
