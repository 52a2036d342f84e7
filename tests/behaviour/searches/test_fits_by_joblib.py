"""Fits that share nothing, in processes of joblib: scores, errors and lines are scikit-learn's."""

import io
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import sklearn.exceptions
import sklearn.model_selection
from joblib import parallel_config
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import manyfit.model_selection
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.running import _executors, _sklearn_fits
from manyfit.model_selection.running._sklearn_fits import MOST_BYTES, FitInputs, InputFile
from manyfit.model_selection.sharing import _plain_scores
from tests._covering import spread

X, Y = make_classification(200, 8, random_state=0)
GRID = {"max_depth": [1, 3, None], "min_samples_leaf": [1, 5]}
FAILING = {"max_depth": [1, -1], "min_samples_leaf": [1, 5]}
WEIGHTS = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)


def fitted(library, grid, fit_params, options):
    tree = DecisionTreeClassifier(random_state=0)
    search = library.GridSearchCV(tree, grid, n_jobs=2, refit=False, **options)
    return search.fit(X, Y, **fit_params)


@pytest.mark.parametrize(
    ("grid", "fit_params", "options"),
    spread(
        [
            (GRID, {}, {"return_train_score": True, "cv": 4}),
            (GRID, {"sample_weight": WEIGHTS}, {"scoring": ["accuracy", "roc_auc"]}),
            (GRID, {}, {"error_score": "raise", "pre_dispatch": "all"}),
            (GRID, {}, {"pre_dispatch": 3, "cv": sklearn.model_selection.TimeSeriesSplit(4)}),
        ],
        2,
    ),
)
def test_scores(grid, fit_params, options):
    ours = fitted(manyfit.model_selection, grid, fit_params, options)
    theirs = fitted(sklearn.model_selection, grid, fit_params, options)
    assert ours.report_.fits_done == ours.report_.fits_requested
    for name, values in theirs.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(ours.cv_results_[name], values)


TARGETS = {
    "integers": Y,
    "texts": np.array(["no", "yes"])[Y],
    "series": pd.Series(Y > 0),
    "list": Y.tolist(),
    "numbers": X[:, 0],
    "series of numbers": pd.Series(X[:, 0]),
    "two columns": X[:, :2],
}


@pytest.mark.parametrize("name", TARGETS)
def test_scores_of_targets_that_are_checked_once(name):
    number = "number" in name or "columns" in name
    tree = (DecisionTreeRegressor if number else DecisionTreeClassifier)(random_state=0)
    grid = {"max_depth": [1, 3], "min_samples_leaf": [1, 5]}
    scoring = "neg_root_mean_squared_error" if name == "numbers" else None
    ours, theirs = (
        library.GridSearchCV(tree, grid, scoring=scoring, n_jobs=2, return_train_score=True, refit=False)
        for library in (manyfit.model_selection, sklearn.model_selection)
    )
    ours.fit(X, TARGETS[name])
    for column, values in theirs.fit(X, TARGETS[name]).cv_results_.items():
        if "time" not in column:
            np.testing.assert_array_equal(ours.cv_results_[column], values)


@pytest.mark.parametrize(("n_settings", "plain"), [(2, True), (1, False)])
def test_targets_are_checked_once_if_several_settings_read_them(monkeypatch, n_settings, plain):
    monkeypatch.setitem(_plain_scores._FORMULAS, accuracy_score, lambda *_: 0.125)
    tree = DecisionTreeClassifier(random_state=0)
    grid = {"min_samples_leaf": [1, 5][:n_settings]}
    with parallel_config("threading"):
        search = manyfit.model_selection.GridSearchCV(tree, grid, n_jobs=2, refit=False).fit(X, Y)
    assert set(search.cv_results_["mean_test_score"] == 0.125) == {plain}


def test_settings_with_other_last_steps_are_scored_by_theirs():
    grid = {"decisiontreeregressor": [DecisionTreeRegressor(random_state=0), DecisionTreeClassifier()]}
    pipeline = make_pipeline(MinMaxScaler(), DecisionTreeRegressor(random_state=0))
    scores = _plain_scores.split_scorers(_passthrough(pipeline), pipeline).of_split(0)
    for last in grid["decisiontreeregressor"]:
        model = make_pipeline(MinMaxScaler(), last).fit(X[:100], Y[:100])
        assert scores(model, X, Y) == model.score(X, Y)


def test_few_targets_of_many_splits_are_kept(monkeypatch):
    monkeypatch.setattr(_plain_scores, "MOST_KEPT", 3 * Y.nbytes)
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    scorers = _plain_scores.split_scorers(_passthrough(tree), tree)
    for i in (0, 1, 2, 3, 0):
        assert scorers.of_split(i)(tree, X, Y) == 1.0
    assert [len(kept) for kept in scorers._checked.values()] == [1, 1, 1, 0]


def _passthrough(estimator):
    return sklearn.metrics.check_scoring(estimator)


# ------------------------------------------------------------------------------ inputs in a file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def inputs(X):
    return FitInputs(max, DecisionTreeClassifier(), X, Y, {}, None, "warn", nullcontext)


def test_a_process_reads_inputs_once(folder, monkeypatch):
    monkeypatch.setattr(_sklearn_fits, "_last_read", None)
    file = InputFile.write(inputs(X))
    first = file.read()
    np.testing.assert_array_equal(first.X, X)
    assert first.X is not X
    assert file.read() is first
    assert InputFile.write(inputs(X)).read() is not first
    file.remove()
    file.remove()
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("X", [["long" * MOST_BYTES], threading.Lock()], ids=["large", "not to be pickled"])
def test_other_inputs_are_sent(folder, X):
    assert InputFile.write(inputs(X)) is None
    assert not list(folder.iterdir())


def test_large_inputs_are_not_written():
    stream = io.BytesIO()
    limited = _sklearn_fits._LimitedStream(stream)
    limited.write(b"0" * MOST_BYTES)
    with pytest.raises(OverflowError, match="large"):
        limited.write(b"0")
    assert len(stream.getvalue()) == MOST_BYTES


def test_inputs_are_sent_where_joblib_cannot_track_a_file(folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "\u00e9"))
    (folder / "\u00e9").mkdir()
    assert InputFile.write(inputs(X)) is None
    assert not list((folder / "\u00e9").iterdir())


class Rows(np.ndarray):
    """Rows of a class that a user has defined in a script: no process can import it."""

    __module__ = "__main__"


def test_a_class_of_a_script_is_written_with_its_code(monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "Rows", Rows, raising=False)
    ours, theirs = (
        library.GridSearchCV(DecisionTreeClassifier(random_state=0), GRID, n_jobs=2, refit=False)
        for library in (manyfit.model_selection, sklearn.model_selection)
    )
    scores = [one.fit(X.view(Rows), Y).cv_results_["mean_test_score"] for one in (ours, theirs)]
    np.testing.assert_array_equal(*scores)


def test_each_fit_gets_parameters_that_another_one_changes():
    estimator = SGDClassifier(max_iter=2, tol=None, learning_rate="constant", eta0=1e-3, random_state=0)
    alphas, cv = [1.0, 0.1, 0.01], sklearn.model_selection.KFold(4)
    search = manyfit.model_selection.GridSearchCV(estimator, {"alpha": alphas}, cv=cv, n_jobs=2, refit=False)
    search.fit(X, Y, coef_init=np.zeros((1, X.shape[1])))
    for i, (train, test) in enumerate(cv.split(X)):
        for c, alpha in enumerate(alphas):
            model = sklearn.base.clone(estimator).set_params(alpha=alpha)
            model.fit(X[train], Y[train], coef_init=np.zeros((1, X.shape[1])))
            assert search.cv_results_[f"split{i}_test_score"][c] == model.score(X[test], Y[test])


def test_inputs_are_sent_where_no_file_can_be_written(monkeypatch):
    def no_space(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", no_space)
    assert InputFile.write(inputs(X)) is None
    ours = fitted(manyfit.model_selection, GRID, {}, {})
    theirs = fitted(sklearn.model_selection, GRID, {}, {})
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


@pytest.mark.parametrize(("backend", "n_files"), [("loky", 1), ("threading", 0)])
def test_the_file_of_a_search_is_removed(folder, monkeypatch, backend, n_files):
    written = []
    write = InputFile.write
    monkeypatch.setattr(InputFile, "write", lambda inputs: written.append(write(inputs)) or written[-1])
    with parallel_config(backend):
        fitted(manyfit.model_selection, GRID, {}, {})
    assert [type(one) for one in written] == [InputFile] * n_files
    assert not list(folder.glob("manyfit-*"))


def test_the_file_of_a_search_that_its_reader_ends_is_removed(folder, monkeypatch):
    written = []

    def no_space(*_, **__):
        written.extend(folder.glob("manyfit-*"))
        raise OSError(28, "No space left on device")

    def in_this_process(task, arguments, *_):
        yield from (task(*one) for one in arguments)

    # In this process: joblib's would be ended, and its threads may fail while that happens.
    monkeypatch.setattr(_executors, "run_tasks_unordered", in_this_process)
    monkeypatch.setattr(ResultSink, "take", no_space)
    with pytest.raises(OSError, match="No space") as failed:
        fitted(manyfit.model_selection, GRID, {}, {})
    assert failed.tb is not None  # it holds the frames of the search
    assert len(written) == 1
    assert not list(folder.glob("manyfit-*"))


KILLED = """
import os, signal, tempfile
from contextlib import nullcontext
from manyfit.model_selection.running._sklearn_fits import FitInputs, InputFile
InputFile.write(FitInputs(max, None, [1.0], None, {}, None, "warn", nullcontext))
print(len(os.listdir(tempfile.gettempdir())), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_the_file_of_a_process_that_is_killed_is_removed(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    # It waits for joblib's tracker, which writes to the same streams.
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, env=environment)
    assert done.stdout == "1\n"
    assert not list(tmp_path.iterdir())


def test_failing_fits_get_the_error_score():
    with pytest.warns(sklearn.exceptions.FitFailedWarning) as warned:
        ours = fitted(manyfit.model_selection, FAILING, {}, {"error_score": -7.0})
    with pytest.warns(sklearn.exceptions.FitFailedWarning) as expected:
        theirs = fitted(sklearn.model_selection, FAILING, {}, {"error_score": -7.0})
    assert ours.cv_results_["mean_test_score"].tolist() == theirs.cv_results_["mean_test_score"].tolist()
    assert ours.cv_results_["mean_test_score"].min() == -7.0
    first, second = (str(one[0].message).partition("\n")[0] for one in (warned, expected))
    assert first == second


@pytest.mark.slow  # ends the workers
def test_an_error_is_raised(folder):
    with pytest.raises(ValueError, match="max_depth"):
        fitted(manyfit.model_selection, FAILING, {}, {"error_score": "raise"})
    assert not list(folder.glob("manyfit-*"))


def test_learning_curves_are_those_of_sklearn():
    tree = DecisionTreeClassifier(random_state=0)
    ours, theirs = (
        one.learning_curve(tree, X, Y, cv=3, n_jobs=2)
        for one in (manyfit.model_selection, sklearn.model_selection)
    )
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(found, expected)
