"""What crosses between host and device in a search, named before it does."""

from dataclasses import dataclass

from dask.utils import format_bytes

# Why something crosses, in words that several places use.
SCORED = "scores are made where predictions are"
REFIT = "in the refit"
ASKED = "a scorer of your own is taken to predict once"
APART = "rows of a fold lie apart"
BACK = "what follows is handed it where X lies"
CHECKED = "they are checked there"
COUNTED = "iterations read it there"
FITTED = "it is fitted there"
READ = "splits, labels and scores read it there"
HOME = "a scorer reads them there"
JOINED = "it is joined with what is sparse"
SMALL = "fits of small matrices are the host's"
SUMMED = "it is summed with X"
SAMPLED = "iterations begin on some of the rows"


@dataclass(frozen=True)
class Move:
    """Arrays of one kind that cross between the host and the device of a search, for one reason.

    Attributes
    ----------
    what : str
        Which arrays: "X", "y", "output of PolynomialFeatures for SVR", "predictions of SVR" ...
    target : {"host", "device"}
        Where they go; they come from the other one.
    often : {"once a search", "once a fold", "once a fit", "once a pass", "in the refit", "once a worker"}
        How often. A fold of which training and test rows cross is two arrays.
    times : int or None
        Arrays in all; None where the number of passes, or of workers, is not known before the fit.
    nbytes : int or None
        Bytes in all, of each time where `times` is None; None where a fit tells how many columns there are.
    why : str
        What it is for.
    """

    what: str
    target: str
    often: str
    times: int | None
    nbytes: int | None
    why: str

    def __str__(self) -> str:
        arrays = "" if self.times is None else f", {self.times} array{'s' * (self.times != 1)}"
        size = "of a size that the fit tells" if self.nbytes is None else format_bytes(self.nbytes)
        return f"{self.what}, to the {self.target} {self.often}{arrays}, {size}: {self.why}"


class Moves:
    """Collects moves; what is alike counts as one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, str], tuple[int | None, int | None]] = {}

    def add(
        self, what: str, target: str, often: str, times: int | None, nbytes: float | None, why: str
    ) -> None:
        """Add arrays, as `Move` has them; none where there are no bytes."""
        if times == 0 or nbytes == 0:
            return
        key, size = (what, target, often, why), None if nbytes is None else round(nbytes)
        if key in self._found:
            before = self._found[key]
            times = None if times is None or before[0] is None else times + before[0]
            size = None if size is None or before[1] is None else size + before[1]
        self._found[key] = times, size

    @property
    def found(self) -> tuple[Move, ...]:
        """All that were added, in the order of the first of each kind."""
        return tuple(
            Move(what, target, often, times, nbytes, why)
            for (what, target, often, why), (times, nbytes) in self._found.items()
        )
