"""Plan and report begin with how much was shared; notebooks show them as tables."""

from html.parser import HTMLParser

import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import GridSearchCV

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
        "No fit was shared: scikit-learn made all 10.",
    ),
    "steps": (
        STEPS,
        TREES,
        "No fit can be shared: scikit-learn makes all 10 fits, and fits the steps before the last one once "
        "per split.",
        "No fit was shared: scikit-learn made all 10; 5 fits of transformers were saved.",
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


def test_a_view_shows_texts_of_users_as_text():
    class B(DecisionTreeClassifier):
        pass

    B.__name__ = B.__qualname__ = "<b>"
    search = GridSearchCV(B(), {"max_depth": [1, 2]})
    assert "<b>: " not in search.plan(X, Y)._repr_html_()
    assert "&lt;b&gt;" in search.plan(X, Y)._repr_html_()
