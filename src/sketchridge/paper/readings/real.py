"""Figures 4 and 5: active learning on flights and on the weather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from sketchridge.paper.base import Experiment, Row
from sketchridge.paper.options import Options
from sketchridge.paper.readings.real_claims import RealClaims
from sketchridge.paper.readings.real_pictures import RealPictures, curves_of
from sketchridge.paper.runs.real import MODELS, SOURCES, Real
from sketchridge.paper.verdicts import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RealReading"]

USUAL = {
    "flights": ("flights of January to April 2008", "flights of 2008"),
    "weather": ("weather of North America",),
}
_COUNTED = {
    "with the paper's two curves": ("V2", "labels"),
    "of gp and V2-top at its m": ("gp", "labels"),
    "with m fixed": ("V2", "fixed"),
    "of gp and V2-top there": ("gp", "fixed"),
    "with learned bandwidths": ("V2", "learned"),
    "of the automatic sketch": ("V2", "auto"),
}
PAPERS_DATA = {"flights": USUAL["flights"], "weather": ()}


class RealReading(Experiment):
    """V2 against uniform sampling, at equal m, up to half of the pool."""

    choices: ClassVar[str] = (
        "A pool of {pool}, {test} test points or what the pool leaves, {batch} labels at first "
        "and in each of {rounds} rounds: in the end {share} of the pool is labeled; where all of "
        "it is, strategies no longer differ. Repetitions: {repetitions}. Features scaled to "
        "standard deviation 1 in the pool; the Gaussian kernel, its bandwidth the median distance "
        "of 20,000 pairs of the pool; λ by leave-one-out in every round, on 100 values of nλ "
        "from 1e-10 to 10 times the largest eigenvalue of the sketched kernel matrix; y centered "
        "by the mean of the first labels; no test row enters. A Gaussian sketch; m = ⌈log n⌉ with "
        "n the labels of the round, with n the pool, and m = {m}, which is not the paper's. "
        "Scores come from sums in single precision for the paper's m and in double precision for "
        "m = {m}. Every strategy of a repetition has the same pool, test points, first labels and "
        "keys of the draw. Learned bandwidths: one for each feature (ARD) of the Gaussian "
        "kernel, learned once from the first labels, at most 1,000 rows, by leave-one-out on the "
        "flights and by the restricted likelihood on the weather, which has fewer than 500; then "
        "m = {m}. The automatic sketch (randomly pivoted Cholesky, GCV with a guard, at most 512 "
        "rows) is apart, since its m may differ between strategies."
    )

    def __init__(self, source: str) -> None:
        self.source = SOURCES[source]
        self.name = {"flights": "fig4", "weather": "fig5"}[source]
        words = {
            "flights": "Figure 4: flight delays",
            "weather": "Figure 5: weather of North America",
        }
        self.title = words[source]
        self.maker = Real(source)

    def heading(self, rows: Sequence[Row]) -> str:
        """With the data set, where it is not the usual one."""
        name = _origin(rows)
        usual = name in ("", *USUAL[self.source.name])
        return self.title if usual else f"{self.title.partition(':')[0]}, but with {name}"

    def described(self, rows: Sequence[Row], options: Options) -> str:
        name = _origin(rows) or "not named in the table"
        return f"Data: {name}. {super().described(rows, options)}"

    def sizes(self, options: Options) -> dict[str, str]:
        cells = self.maker.cells(options)
        one = cells[0]
        labels = (one["rounds"] + 1) * self.source.batch
        counts = {
            words: sum((c["strategy"], c["model"]) == of for c in cells)
            for words, of in _COUNTED.items()
        }
        return {
            "pool": f"{one['pool']:,}",
            "test": f"{self.source.test:,}",
            "batch": f"{self.source.batch:,}",
            "rounds": str(one["rounds"]),
            "share": f"{labels / one['pool']:.0%}",
            "m": str(one["m"]),
            "repetitions": ", ".join(f"{k} {words}" for words, k in counts.items() if k),
        }

    def _departure(self, rows: Sequence[Row]) -> str:
        """What is said before every number of data that are not the paper's."""
        name = _origin(rows)
        if name in ("", *PAPERS_DATA[self.source.name]):
            return "" if self.source.name == "flights" else "North America, not the paper's data. "
        return f"{name[0].upper()}{name[1:]}, not the paper's data. "

    # Pictures

    def figures(self, rows: Sequence[Row]) -> dict[str, Figure]:
        pictures = RealPictures(self.source, self.heading(rows))
        found = {self.name: pictures.main(rows)}
        curves = curves_of(rows, "rmse")
        if f"V2, {MODELS['learned']}" in curves:
            found[f"{self.name}-learned"] = pictures.learned(curves)
        if f"V2, {MODELS['auto']}" in curves:
            found[f"{self.name}-automatic"] = pictures.automatic(rows, curves)
        return found

    def figure(self, rows: Sequence[Row]) -> Figure:
        return RealPictures(self.source, self.heading(rows)).main(rows)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        found = RealClaims(self.name, self.source).all(
            curves_of(rows, "rmse"), curves_of(rows, "m")
        )
        said = self._departure(rows)
        return [replace(claim, measured=f"{said}{claim.measured}") for claim in found]


def _origin(rows: Sequence[Row]) -> str:
    """The data set as the rows name it; tables of before it was written down name none."""
    return " and ".join(sorted({str(row["data"]) for row in rows if "data" in row}))
