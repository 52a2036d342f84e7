"""Docstrings that take descriptions of parameters from others."""

from __future__ import annotations

import inspect

import pytest
from numpydoc.docscrape import NumpyDocString

import manyfit
from manyfit import model_selection
from manyfit.introspection.parameter_docs import complete_parameters

COMPLETED = [
    model_selection.RandomizedSearchCV,
    model_selection.HalvingGridSearchCV,
    model_selection.HalvingRandomSearchCV,
    model_selection.OptunaSearchCV,
    model_selection.HyperbandSearchCV,
    model_selection.SuccessiveHalvingSearchCV,
    manyfit.installed,
]


@pytest.mark.parametrize("thing", COMPLETED, ids=lambda thing: thing.__name__)
def test_each_parameter_is_described_with_its_default(thing):
    described = NumpyDocString(inspect.getdoc(thing))["Parameters"]
    parameters = inspect.signature(thing).parameters
    assert [one.name for one in described] == list(parameters)
    for one in described:
        _, _, default = one.type.partition("default=")
        given = parameters[one.name].default
        assert one.desc and default.strip('"') == ("" if given is inspect.Parameter.empty else str(given))


class Base:
    """Something.

    Parameters
    ----------
    a : int
        The first.
    b : int, default=2
        The second,
        in two lines.

    Notes
    -----
    None.
    """

    def __init__(self, a, b=2): ...


def test_own_descriptions_win_and_all_stand_in_the_order_of_the_signature():
    @complete_parameters(Base)
    class Own:
        """Something else.

        Parameters
        ----------
        c : int
            The third.
        a : str
            Another.

        Returns
        -------
        Nothing.
        """

        def __init__(self, b, a, c): ...

    assert Own.__doc__.splitlines()[4:13] == [
        "b : int, default=2", "    The second,", "    in two lines.",
        "a : str", "    Another.", "c : int", "    The third.", "", "Returns",
    ]  # fmt: skip


def test_a_parameter_that_nothing_describes_is_an_error():
    with pytest.raises(KeyError, match="unknown"):

        @complete_parameters(Base)
        def function(a, unknown):
            """Something.

            Parameters
            ----------
            a : int
                The first.
            """
