"""Code that the strategies with shared fits have in common when they serve a batch."""

from __future__ import annotations

from manyfit._compat import routing_enabled
from manyfit.folds import Unsupported
from manyfit.metrics import SharedScoring
from manyfit.model_selection.planning._metadata_routing import require_scored_by_last_step
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.planning.steps._order import sample
from manyfit.model_selection.strategies._strategy import Batch, Strategy, scoring_of


def family_group(strategy: Strategy, batch: Batch, facts: SearchFacts) -> Group:
    """The group of a batch whose fits are shared; raises `Unsupported` if the search does not allow it."""
    family, job, spec = batch.family, facts.job, batch.spec
    assert family is not None
    if family.result == "converged" and job.sharing == "exact":
        raise Unsupported("sharing='exact' leaves out families that converge")
    if job.options.return_train_score and facts.checks.writes_into_input(spec):
        raise Unsupported("training scores would be of rows that a step has overwritten (copy=False)")
    return Group(
        strategy,
        batch.candidates,
        batch.title,
        fits_requested=len(batch.candidates) * job.splits.n_splits,
        fits_planned=0,
        settings=batch.settings,
        steps=spec.steps,
        family=family,
        prototype=spec.final.build(),
        path=spec.final.path,
    )


def require_scoring(group: Group, facts: SearchFacts) -> SharedScoring:
    """The scorers of a group; raises `Unsupported` if they cannot score shared answers."""
    options = facts.job.options
    scoring = scoring_of(group, options)
    if scoring.by_itself and routing_enabled():
        require_scored_by_last_step(sample(facts.job, group.candidates[0]), options.score_params)
    return scoring
