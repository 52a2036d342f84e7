"""Settings that nest: smaller ensembles within the largest one, and smaller trees within the largest one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from lightgbm import LGBMRegressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor
from xgboost import XGBRegressor

from tests.differential._recipe import Recipe
from tests.differential._register import CLASS_SCORERS, Grid, register
from tests.differential.families.least_squares import some

SCORERS = (*CLASS_SCORERS, "roc_auc_ovr", "neg_brier_score")
MEMBERS = (1, 2, 3, 5, 8, 0)
LEAVES = (None, 2, 3, 5, 9, 30, 1)
ALPHAS = (0.0, 1e-9, 1e-3, 0.02, 0.1, 1.0, 1e4, -1.0)


def _seed(draw: st.DrawFn) -> int:
    return draw(st.integers(0, 99))


def _early_stopping(draw: st.DrawFn) -> dict[str, Any]:
    return draw(st.sampled_from([{}, {"n_iter_no_change": 1, "tol": 0.1, "validation_fraction": 0.3}]))


@register("ensembles of classifiers", classes=True, scorers=SCORERS)
def ensembles_of_classifiers(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    seed = _seed(draw)
    model = draw(
        st.sampled_from(
            [
                RandomForestClassifier(max_features=1, max_depth=3, random_state=seed),
                RandomForestClassifier(class_weight="balanced_subsample", n_jobs=2, random_state=seed),
                BaggingClassifier(max_features=0.7, random_state=seed),
                BaggingClassifier(KNeighborsClassifier(2), max_samples=0.5, random_state=seed),
                AdaBoostClassifier(learning_rate=2.0, random_state=seed),
                AdaBoostClassifier(DecisionTreeClassifier(max_depth=4), random_state=seed),
            ]
        )
    )
    return model, {"n_estimators": some(draw, *MEMBERS)}


@register("ensembles of regressors")
def ensembles_of_regressors(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    seed = _seed(draw)
    model = draw(
        st.sampled_from(
            [
                ExtraTreesRegressor(max_depth=3, random_state=seed),
                ExtraTreesRegressor(bootstrap=True, ccp_alpha=0.1, random_state=seed),
                BaggingRegressor(random_state=seed),
                AdaBoostRegressor(loss="square", random_state=seed),
            ]
        )
    )
    pipeline = make_pipeline(StandardScaler(), model)
    return pipeline, {f"{type(model).__name__.lower()}__n_estimators": some(draw, *MEMBERS)}


@register("isolation forests")
def isolation_forests(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = IsolationForest(
        max_samples=draw(st.sampled_from(["auto", 0.5, 3, 40])),
        max_features=draw(st.sampled_from([1.0, 0.5])),
        bootstrap=draw(st.booleans()),
        random_state=_seed(draw),
    )
    shares = some(draw, "auto", 0.1, 0.5, 0.0, 0.7)
    return model, {"n_estimators": some(draw, *MEMBERS), "contamination": shares}


@register("eliminations, classes", classes=True, scorers=SCORERS)
def eliminations_of_classes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    tree = DecisionTreeClassifier(max_depth=3, random_state=_seed(draw))
    model = RFE(tree, step=draw(st.sampled_from([1, 2, 0.4])))
    return model, {"n_features_to_select": some(draw, 1, 2, 3, 5, 99, 0.5)}


@register("eliminations, numbers")
def eliminations_of_numbers(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = make_pipeline(StandardScaler(), RFE(Ridge(), step=draw(st.sampled_from([1, 2]))))
    return model, {"rfe__n_features_to_select": some(draw, 1, 2, 3, 5, 99)}


@register("boosted trees, classes", classes=True, scorers=SCORERS)
def boosted_classes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    if draw(st.booleans()):
        model = HistGradientBoostingClassifier(max_leaf_nodes=4, min_samples_leaf=2)
        if stopping := _early_stopping(draw):
            model.set_params(early_stopping=True, random_state=_seed(draw), **stopping)
        return model, {"max_iter": some(draw, *MEMBERS), "learning_rate": some(draw, 0.1, 1.0)}
    model = GradientBoostingClassifier(subsample=draw(st.sampled_from([1.0, 0.6])), random_state=_seed(draw))
    return model.set_params(**_early_stopping(draw)), {"n_estimators": some(draw, *MEMBERS)}


@register("boosted trees, numbers")
def boosted_numbers(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    if draw(st.booleans()):
        draws = draw(st.sampled_from([{}, {"max_features": 0.5, "random_state": _seed(draw)}]))
        trees = {"max_iter": some(draw, *MEMBERS), "max_depth": some(draw, None, 1, 3)}
        return HistGradientBoostingRegressor(min_samples_leaf=2, **draws), trees
    model = GradientBoostingRegressor(init=draw(st.sampled_from([None, "zero"])), random_state=_seed(draw))
    return model.set_params(**_early_stopping(draw)), {"n_estimators": some(draw, *MEMBERS)}


@register("leaves of trees, classes", classes=True, scorers=SCORERS)
def pruned_classes(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    criterion = draw(st.sampled_from(["gini", "entropy"]))
    model = DecisionTreeClassifier(
        criterion=criterion, max_features=draw(st.sampled_from([None, 1])), random_state=_seed(draw)
    )
    return model, {"ccp_alpha": some(draw, *ALPHAS), "max_leaf_nodes": some(draw, *LEAVES)}


@register("leaves of trees, numbers")
def pruned_numbers(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    kind = draw(st.sampled_from([DecisionTreeRegressor, ExtraTreeRegressor]))
    model = kind(random_state=_seed(draw), max_features=draw(st.sampled_from([None, 1])))
    return model, {"ccp_alpha": some(draw, *ALPHAS), "max_leaf_nodes": some(draw, *LEAVES)}


@register("sizes of forests", classes=True, scorers=SCORERS)
def sizes_of_forests(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    model = RandomForestClassifier(bootstrap=draw(st.booleans()), random_state=_seed(draw))
    sizes = {"ccp_alpha": some(draw, *ALPHAS), "max_leaf_nodes": some(draw, *LEAVES)}
    return model, {"n_estimators": some(draw, 1, 3, 8), **sizes}


@register("members of ensembles, classes", classes=True, scorers=SCORERS)
def members_of_classifiers(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    tree = DecisionTreeClassifier(max_depth=3, random_state=_seed(draw))
    members = [("tree", tree), ("scaled", make_pipeline(StandardScaler(), GaussianNB()))]
    kind = draw(st.sampled_from(["hard", "soft", "stack", "calibrate"]))
    if kind == "calibrate":
        return CalibratedClassifierCV(tree, cv=2), {"method": ["sigmoid", "isotonic"]}
    if kind == "stack":
        return StackingClassifier(members, KNeighborsClassifier(), cv=2), {
            "final_estimator__n_neighbors": some(draw, 1, 3),
            "passthrough": [False, True],
        }
    weights = {"weights": some(draw, None, [1, 1], [2, 1], [1, 0], [1, 2, 3])}
    return VotingClassifier(members, voting=kind), {"tree__max_depth": some(draw, 1, 3), **weights}


@register("members of ensembles, numbers")
def members_of_regressors(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    members = [("tree", DecisionTreeRegressor(max_depth=3, random_state=_seed(draw))), ("ridge", Ridge())]
    if draw(st.booleans()):
        return StackingRegressor(members, Ridge(), cv=2), {"final_estimator__alpha": some(draw, 0.1, 1.0)}
    return VotingRegressor(members), {"weights": some(draw, None, [1, 1], [2, 1], [0, 1])}


@register("boosting of other libraries")
def boosting_of_other_libraries(draw: st.DrawFn, recipe: Recipe) -> tuple[Any, Grid]:
    part = draw(st.sampled_from([{}, {"subsample": 0.5, "random_state": _seed(draw)}]))
    if draw(st.booleans()):
        model = XGBRegressor(n_jobs=1, tree_method=draw(st.sampled_from(["hist", "exact"])), **part)
    else:
        kind = draw(st.sampled_from(["gbdt", "dart"]))
        model = LGBMRegressor(boosting_type=kind, n_jobs=1, min_child_samples=2, verbose=-1, **part)
    trees = {"learning_rate": some(draw, 0.1, 1.0), "max_depth": some(draw, 1, 4)}
    return model, {"n_estimators": some(draw, 1, 2, 5, 9), **trees}
