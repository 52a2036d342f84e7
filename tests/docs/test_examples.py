"""The examples of the pages are run, and print what the page shows."""

from __future__ import annotations

import pytest

from tests.docs._pages import PAGES, examples, masked, run

WITH_EXAMPLES = [name for name, path in PAGES.items() if examples(path.read_text())]


@pytest.mark.invariant("Examples, tables and paths on the pages are true")
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_the_page_shows(name: str) -> None:
    run(PAGES[name].read_text(), name)


def test_the_pages_that_promise_examples_have_some() -> None:
    pages = ("clusters", "devices", "estimators", "joblib", "metrics", "own-family", "searches", "sharing")
    pages += ("displays", "first-search")
    assert {"README.md", *(f"docs/{page}.md" for page in pages)} <= set(WITH_EXAMPLES)


def test_a_family_takes_at_most_25_lines_and_one_with_a_solver_50() -> None:
    code = [example.code for example in examples(PAGES["docs/own-family.md"].read_text())]
    families = [one[one.index("Family(Family):") :] for one in code if "register_family(" in one]
    lines = [len([line for line in one.splitlines() if line]) for one in families]
    assert all(n <= most for n, most in zip(lines, (25, 25, 50), strict=True))


def test_a_row_source_takes_at_most_10_lines() -> None:
    code = [example.code for example in examples(PAGES["docs/own-family.md"].read_text())]
    (source,) = (one[one.index("(HostRows):") :] for one in code if "register_row_source(" in one)
    assert len([line for line in source.splitlines() if line]) <= 10


PAGE = """
```python
x = 1
```

```python
print("x is", x)
print("seconds, total  0.12")
```

```text
x is 1
seconds, total        3.45
```
"""


def test_a_true_page_passes() -> None:
    assert [example.line for example in examples(PAGE)] == [3, 7]
    run(PAGE, "page")


@pytest.mark.parametrize(("old", "new"), [("x is 1", "x is 2"), ("x = 1", "x = 1; print(x)"), ("text", "sh")])
def test_a_page_that_shows_something_else_is_found(old: str, new: str) -> None:
    with pytest.raises(AssertionError, match="page, line"):
        run(PAGE.replace(old, new), "page")


BEGINNING = PAGE.replace("seconds, total        3.45", "...")


def test_a_text_may_show_the_first_lines() -> None:
    run(BEGINNING, "page")


@pytest.mark.parametrize("change", [("x is 1", "x is 2"), ('print("seconds, total  0.12")', "")])
def test_a_false_beginning_and_one_without_more_lines_are_found(change: tuple[str, str]) -> None:
    with pytest.raises(AssertionError, match="page, line"):
        run(BEGINNING.replace(*change), "page")


def test_the_readme_is_a_screen_and_a_half() -> None:
    assert len(PAGES["README.md"].read_text().splitlines()) <= 90


def test_only_seconds_are_masked() -> None:
    text = "fits made one by one    0\npasses over X    1.5\nseconds, one by one    0.0467\n"
    assert masked(text) == "fits made one by one    0\npasses over X    1.5\nseconds, one by one -\n"
