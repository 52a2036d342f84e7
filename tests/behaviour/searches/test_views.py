"""Plan and report begin with how much was shared; notebooks show them as tables."""

import re
import sys
from html.parser import HTMLParser

import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from manyfit.model_selection.results.displays import _search_view
from manyfit.model_selection.results.displays._search_view import as_html

X, Y = load_iris(return_X_y=True)
X, Y = X[::3], Y[::3]
RIDGE, TREE, FOREST = RidgeClassifier(), DecisionTreeClassifier(random_state=0), RandomForestClassifier(2)
STEPS = make_pipeline(PCA(), TREE)
TREES = {"decisiontreeclassifier__max_depth": [1, 2]}
BOTH = [{"decisiontreeclassifier": [RIDGE], "pca__n_components": [1, 2]}, TREES]

CASES = {
    "all": (
        RIDGE,
        {"alpha": [1, 2]},
        "Shared work answers all 10 fits.",
        "All 10 fits were answered by shared work.",
    ),
    "one fit": (
        RIDGE,
        {},
        "Shared work answers all 5 fits.",
        "All 5 fits were answered by shared work.",
    ),
    "some": (
        STEPS,
        BOTH,
        "Shared work answers 10 of 20 fits.",
        "10 of 20 fits were answered by shared work; 10 were made one by one; 5 fits of transformers were "
        "saved.",
    ),
    "none": (
        FOREST,
        {"max_depth": [1, 2]},
        "No fit can be shared: scikit-learn makes all 10 fits.",
        "No fit was shared: scikit-learn made all 10 fits.",
    ),
    "steps": (
        STEPS,
        TREES,
        "No fit can be shared: scikit-learn makes all 10 fits, and fits the steps before the last one once "
        "per split.",
        "No fit was shared: scikit-learn made all 10 fits; 5 fits of transformers were saved.",
    ),
    "perhaps": (
        TREE,
        {"ccp_alpha": [0.0, 0.01]},
        "Shared work may answer all 10 fits: manyfit decides when it sees the rows of a split.",
        "All 10 fits were answered by shared work.",
    ),
}


class Texts(HTMLParser):
    """The texts of a page, and the tags that are open at its end."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("case", CASES)
def test_the_first_line_says_how_much_is_shared(case):
    estimator, grid, foreseen, done = CASES[case]
    search = GridSearchCV(estimator, grid)
    plan = search.plan(X, Y)
    report = search.fit(X, Y).report_
    assert (plan.verdict, report.verdict) == (foreseen, done)
    for view, verdict in (plan, foreseen), (report, done):
        assert str(view).splitlines()[0] == verdict
        page = Texts(view._repr_html_())
        assert page.open == []
        assert verdict in page.texts


def test_a_report_of_restored_fits(tmp_path):
    searches = [GridSearchCV(TREE, {"max_depth": [1, 2]}, checkpoint=tmp_path / "c") for _ in range(2)]
    for search in searches:
        search.fit(X, Y)
    assert (
        searches[1].report_.verdict
        == "No fit had to be made for the 10 fits asked for; 10 were restored from the checkpoint."
    )


def test_the_report_as_a_table_of_groups():
    frame = GridSearchCV(STEPS, BOTH).fit(X, Y).report_.to_frame()
    assert list(frame["kind"]) == ["moments", "moments", "shared steps"]
    assert list(frame["fits_requested"]) == [5, 5, 10]


def test_the_page_of_a_report_counts_like_groups_in_one_row():
    steps = make_pipeline(PCA(), RIDGE)
    search = GridSearchCV(steps, {"pca__n_components": [1, 2, 3], "ridgeclassifier__alpha": [1, 2]})
    texts = Texts(search.fit(X, Y).report_._repr_html_()).texts
    row = texts.index("PCA > RidgeClassifier")
    assert texts[row + 1 : row + 4] == ["3", "6", "30"]
    assert texts.count("PCA > RidgeClassifier") == 1


def test_a_cell_names_its_column_and_single_groups_are_not_counted():
    """On a phone, where a row is a list."""
    page = GridSearchCV(RIDGE, {"alpha": [1, 2]}).plan(X, Y)._repr_html_()
    assert '<td data-name="settings">2</td>' in page
    assert "<th>settings</th>" in page and "groups" not in page


def test_a_view_shows_texts_of_users_as_text():
    class B(DecisionTreeClassifier):
        pass

    B.__name__ = B.__qualname__ = "<b>"
    search = GridSearchCV(B(), {"max_depth": [1, 2]})
    assert "<b>: " not in search.plan(X, Y)._repr_html_()
    assert "&lt;b&gt;" in search.plan(X, Y)._repr_html_()


def titles_of_pictures(page):
    return re.findall(r'<img alt="([^"]*)" src="data:image/png;base64,', page)


SHARING = "What was shared, and seconds"
SPLITS = "Differences to the best, by split"
VIEWS = {
    "one parameter": (
        GridSearchCV(RIDGE, {"alpha": [1, 2, 4]}),
        ["Scores along the parameter", SPLITS, SHARING],
    ),
    "two, with times": (
        RandomizedSearchCV(TREE, {"max_depth": [1, 2], "splitter": ["best", "random"]}, n_iter=4),
        ["Scores over both parameters", SPLITS, "Scores and times", SHARING],
    ),
    "three": (
        GridSearchCV(TREE, {"max_depth": [1, 2], "splitter": ["best", "random"], "max_features": [1, 2]}),
        ["Scores over all parameters", SPLITS, "Scores and times", SHARING],
    ),
    "one setting": (GridSearchCV(RIDGE, {}), [SHARING]),
    "one split": (
        GridSearchCV(RIDGE, {"alpha": [1, 2]}, cv=ShuffleSplit(1, random_state=0)),
        ["Scores along the parameter", SHARING],
    ),
    "rounds": (
        HalvingGridSearchCV(TREE, {"max_depth": [1, 2, 3]}, random_state=0, cv=2, factor=2),
        ["Scores along the parameter", SPLITS, "Scores and times", SHARING],
    ),
    "no best setting": (
        GridSearchCV(RIDGE, {"alpha": [1, 2]}, scoring=["accuracy", "f1_macro"], refit=False),
        [SHARING],
    ),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", VIEWS)
def test_the_view_of_a_fitted_search_has_pictures(case):
    plt = pytest.importorskip("matplotlib.pyplot")
    search, pictures = VIEWS[case]
    search, before = clone(search).fit(X, Y), plt.get_fignums()
    page = as_html(search)
    assert search.report_.verdict in page and titles_of_pictures(page) == pictures
    assert "<script" not in page and "http" not in page and Texts(page).open == []
    assert plt.get_fignums() == before  # other tests may have left some


def test_notebooks_show_the_view_of_a_fitted_search_below_its_diagram(monkeypatch):
    monkeypatch.setattr(_search_view, "as_html", lambda search: f"view of {type(search).__name__}")
    search = GridSearchCV(RIDGE, {})
    assert "view of" not in search._repr_mimebundle_()["text/html"] + search._repr_html_()
    shown = search.fit(X, Y)._repr_mimebundle_()
    assert shown["text/html"].startswith("<style>") and shown["text/plain"] == repr(search)
    assert shown["text/html"].endswith("view of GridSearchCV")
    assert search._repr_html_().endswith("view of GridSearchCV")
    with config_context(display="text"):
        assert list(search._repr_mimebundle_()) == ["text/plain"] and not hasattr(search, "_repr_html_")


def test_the_view_says_what_was_asked_and_which_setting_is_the_best():
    texts = Texts(as_html(GridSearchCV(RIDGE, {"alpha": [1e6, 1]}).fit(X, Y))).texts
    assert texts[0] == "2 settings x 5 splits. Best: alpha=1; mean test score 0.9 ± 0.0632 (standard error)."
    assert any("s in all: " in text for text in texts)


def test_the_view_without_matplotlib_has_no_pictures(monkeypatch):
    search = GridSearchCV(RIDGE, {"alpha": [1, 2]}).fit(X, Y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = search._repr_html_()
    assert "<img" not in page and search.report_.verdict in page


def test_the_settings_as_a_table():
    with pytest.raises(NotFittedError):
        GridSearchCV(RIDGE, {}).to_frame()
    search = GridSearchCV(STEPS, BOTH, scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(X, Y)
    frame = search.to_frame()
    assert frame.index[0] == search.best_index_ and frame["rank_test_f1_macro"].is_monotonic_increasing
    assert dict(frame["kind"]) == {0: "moments", 1: "moments", 2: "shared steps", 3: "shared steps"}
    plan = search.plan(X, Y).to_frame()
    assert plan["settings"].tolist() == [1, 1, 2] and plan["fits_planned"].tolist() == [0, 0, 10]
