"""Figure 1 and Theorem 1: sup|V1 − V2| against n, m and σ, and Assumption A1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import stats

from sketchridge.paper.base import Experiment, Row, groups
from sketchridge.paper.readings.gap_pictures import (
    AXES,
    LAMBDAS,
    gap_figure,
    means_by_value,
    part_of,
)
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.runs.gaps import DECAYS, Gaps
from sketchridge.paper.statistics import MEANS, Estimate, arithmetic, geometric, rate, share
from sketchridge.paper.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    SHOWN,
    Claim,
    below,
    judged,
    listed,
    within,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SupGap"]

NAMES = {"polynomial": "polynomial decay", "gaussian": "Gaussian kernel"}


@dataclass(frozen=True)
class SupGap(Experiment):
    """One panel: what varies is n, c or sigma."""

    name: str
    decay: str
    varies: str
    choices: ClassVar[str] = (
        "X ~ U[0, 1], a Gaussian sketch, fresh data in each repetition; labels do not enter V1 or "
        "V2. The supremum is over 201 points. What the paper leaves open is read in two ways: λ "
        "of the optimal rate of Examples 1 and 2, n^(−4/5) and (log n)^(1/2)/n, and λ = 0.01 "
        "fixed. The polynomial kernel is the cubic spline; the periodic Sobolev kernel of order 2, "
        "which Example 1 names too, is shown beside it. The Gaussian bandwidth is 0.25, as in the "
        "appendix. Means are arithmetic (what the paper presumably shows) and geometric."
    )

    @property
    def maker(self) -> Gaps:  # type: ignore[override]
        return Gaps(self.decay, self.varies)

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Figure 1 ({self.name[-1]}): {NAMES[self.decay]}, against {AXES[self.varies]}"

    @property
    def kernel(self) -> str:
        """The paper's, of those that were run."""
        return DECAYS[self.decay].kernels[0]

    def figure(self, rows: Sequence[Row]) -> Figure:
        return gap_figure(self.title, self.varies, DECAYS[self.decay].kernels, rows)

    # Claims

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        if self.varies == "n":
            return [
                self._rate(rows),
                self._example(rows),
                self._scaling(rows),
                self._assumption(rows),
                self._tail(rows),
                self._dimension(rows),
                self._consistent(rows),
                self._beside(rows),
                self._averaged(rows),
            ]
        if self.varies == "c":
            return [self._no_gain(rows), self._probability(rows)]
        return self._sigma(rows)

    def _claim(self, name: str, quote: str, *texts: str) -> Claim:
        return Claim(f"{self.name}: {name}", *QUOTES[quote], *texts)

    def _part(
        self, rows: Sequence[Row], lambda_is: str, *, m_is: str = "rule", kernel: str = ""
    ) -> list[Row]:
        return part_of(rows, kernel or self.kernel, lambda_is, m_is)

    def _slope(self, rows: Sequence[Row], column: str, mean: Any) -> Estimate:
        """Of the means over n; NaN-free, with an interval from their scatter about the line."""
        means = means_by_value(rows, column, mean)
        return rate(list(means), [e.mean for e in means.values()])

    def _rate(self, rows: Sequence[Row]) -> Claim:
        slopes = {
            f"{words}, {kind} mean": self._slope(self._part(rows, reading), "gap_v2", mean)
            for (reading, words), (kind, mean) in product(LAMBDAS.items(), MEANS.items())
        }
        at_fixed_m = {
            words: self._slope(self._part(rows, reading, m_is="fixed"), "gap_v2", geometric)
            for reading, words in LAMBDAS.items()
        }
        others = {
            kernel: self._slope(self._part(rows, "optimal", kernel=kernel), "gap_v2", geometric)
            for kernel in DECAYS[self.decay].kernels[1:]
        }
        remark = (
            "Theorem 1 bounds the gap by σ²/(nλ): 1/n is its prediction for λ fixed. m goes in "
            "steps; with m held at its value for n = 1,000 the exponents are "
            f"{listed(at_fixed_m)} (geometric means)."
        )
        if others:
            remark += f" Beside it, optimal λ, geometric: {listed(others)}."
        return self._claim(
            "rate 1/n",
            "rate",
            "exponent of n (holds: interval below −0.9)",
            *judged(slopes, lambda found: below(found, -0.9)),
            remark,
        )

    def _example(self, rows: Sequence[Row]) -> Claim:
        """The bounds of Examples 1 and 2 at the optimal λ."""
        polynomial = self.decay == "polynomial"
        limit = -1 / 5 if polynomial else -1 / 2
        found = {}
        for kind, mean in MEANS.items():
            means = means_by_value(self._part(rows, "optimal"), "gap_v2", mean)
            x = np.array(list(means)) if polynomial else np.log(list(means))
            found[f"{kind} mean"] = rate(x, [e.mean for e in means.values()])
        return self._claim(
            "the bound of the example",
            f"bound_{self.decay}",
            f"exponent of {'n' if polynomial else 'log n'} at the optimal λ, at most {limit:g}",
            *judged(found, lambda e: below(e, limit)),
        )

    def _scaling(self, rows: Sequence[Row]) -> Claim:
        slopes = {}
        largest = 0.0
        for reading, words in LAMBDAS.items():
            part = [r for r in self._part(rows, reading) if r["m"] >= r["s_lambda"]]
            scaled = [{**r, "scaled": r["gap_v2"] * r["n"] * r["lambda"]} for r in part]
            largest = max(largest, max(r["scaled"] for r in scaled))
            for kind, mean in MEANS.items():
                slopes[f"{words}, {kind} mean"] = self._slope(scaled, "scaled", mean)
        return self._claim(
            "Theorem 1, the scaling",
            "theorem",
            "exponent of n of gap·nλ/σ², rows with m ≥ s_λ (holds: interval below 0.1)",
            *judged(slopes, lambda found: below(found, 0.1)),
            f"c′ = {largest:.3g} suffices in every repetition with m ≥ s_λ.",
        )

    def _tail(self, rows: Sequence[Row]) -> Claim:
        found = {}
        for reading, words in LAMBDAS.items():
            by_n = groups(self._part(rows, reading), "value").values()
            found[words] = max(np.quantile([r["a1_tail"] for r in part], 0.95) for part in by_n)
        return self._claim(
            "Assumption A1 (ii)",
            "a1_ii",
            "largest 95% quantile of ‖SU₂D₂^½‖/√λ over n (holds: at most 2)",
            *judged(
                {words: f"{value:.3g}" for words, value in found.items()},
                lambda text: HOLDS if float(text) <= 2 else FAILS,
            ),
        )

    def _dimension(self, rows: Sequence[Row]) -> Claim:
        """s_λ at the optimal λ grows as the examples say."""
        polynomial = self.decay == "polynomial"
        target, near = (1 / 5, 0.05) if polynomial else (1 / 2, 0.1)
        part = [r for r in rows if (r["kernel"], r["lambda_is"]) == (self.kernel, "spectrum")]
        n = np.array([r["n"] for r in part], dtype=float)
        found = rate(n if polynomial else np.log(n), [r["s_lambda"] for r in part])
        return self._claim(
            "s_λ",
            f"s_{self.decay}",
            f"exponent of {'n' if polynomial else 'log n'} of s_λ at the optimal λ, n = 10⁴ … "
            f"10¹⁰ (holds: within {target:g} ± {near:g})",
            str(found),
            within(found, target - near, target + near),
            f"s_λ is {part[0]['s_lambda']} at n = 10⁴ and {part[-1]['s_lambda']} at n = 10¹⁰, by "
            "the eigenvalues of the kernel on an even grid.",
        )

    def _consistent(self, rows: Sequence[Row]) -> Claim:
        slopes = {}
        for reading, words in LAMBDAS.items():
            part = [{**r, "relative": r["gap_v2"] / r["sup_v1"]} for r in self._part(rows, reading)]
            for kind, mean in MEANS.items():
                slopes[f"{words}, {kind} mean"] = self._slope(part, "relative", mean)
        return self._claim(
            "consistent",
            "consistent",
            "exponent of n of gap/sup V1, m by the paper's rule (holds: interval below 0)",
            *judged(slopes, lambda found: below(found, 0.0)),
            "In units of sup V1, since V1 itself goes to 0 with n.",
        )

    def _beside(self, rows: Sequence[Row]) -> Claim:
        found = {}
        for reading, words in LAMBDAS.items():
            part = self._part(rows, reading)
            ratio = geometric([r["gap_v3"] / r["gap_v2"] for r in part])
            spread = [
                np.mean(
                    [np.std(np.log([r[c] for r in one])) for one in groups(part, "value").values()]
                )
                for c in ("gap_v2", "gap_v3")
            ]
            found[words] = (
                f"{ratio}, standard deviations of the logarithms {spread[0]:.2g} (V2) and "
                f"{spread[1]:.2g} (V3)"
            )
        return self._claim(
            "V3 beside V2",
            "v3",
            "sup|V1 − V3| over sup|V1 − V2|",
            listed(found),
            SHOWN,
            "V3 is the corrected form (errata).",
        )

    def _averaged(self, rows: Sequence[Row]) -> Claim:
        found = {
            words: geometric([r["gap_v2"] / r["gap_vbar"] for r in self._part(rows, reading)])
            for reading, words in LAMBDAS.items()
        }
        return Claim(
            f"{self.name}: the averaged variance",
            "",
            "(Of this library.) V̄ is nearer to V1 than V2 is.",
            "sup|V1 − V2| over sup|V1 − V̄|, geometric mean",
            *judged(found, lambda e: below(_inverse(e), 1.0)),
        )

    def _no_gain(self, rows: Sequence[Row]) -> Claim:
        part = self._part(rows, "optimal")
        linear = [e.mean for e in means_by_value(part, "gap_v2", arithmetic).values()]
        log = [np.log(e.mean) for e in means_by_value(part, "gap_v2", geometric).values()]
        values = sorted({row["value"] for row in part})
        one = values.index(1.0)
        reached = {
            name: float((y[0] - y[one]) / (y[0] - y[-1]))
            for name, y in (("linear axes", linear), ("logarithmic axes", log))
        }
        at_one = [r for r in part if r["value"] == 1.0]
        relative = {
            kind: mean([r["gap_v2"] / r["sup_v1"] for r in at_one]).mean
            for kind, mean in MEANS.items()
        }
        return self._claim(
            "no gain beyond c = 1",
            "no_gain",
            "share of the fall of the mean gap that is reached at c = 1 (holds: 90% or more)",
            *judged(
                {name: f"{100 * value:.1f}%" for name, value in reached.items()},
                lambda text: HOLDS if float(text[:-1]) >= 90 else FAILS,
            ),
            f"At c = 1 (m = {at_one[0]['m']}, s_λ = {_range(r['s_lambda'] for r in at_one)}) the "
            f"gap is {relative['arithmetic']:.2g} (arithmetic) or {relative['geometric']:.2g} "
            "(geometric) times sup V1.",
        )

    def _probability(self, rows: Sequence[Row]) -> Claim:
        """Failures of gap·nλ ≤ 1 by m, at n = 1,000."""
        part = self._part(rows, "optimal")
        failed = {
            m: [r["gap_v2"] * r["n"] * r["lambda"] > 1 for r in several]
            for (m,), several in sorted(groups(part, "m").items())
        }
        counts = {m: (sum(flags), len(flags)) for m, flags in failed.items()}
        (k0, n0), (k1, n1) = counts[min(counts)], counts[max(counts)]
        p = float(stats.fisher_exact([[k0, n0 - k0], [k1, n1 - k1]])[1])
        inside = [r for r in part if r["m"] >= r["s_lambda"]]
        never = not any(r["gap_v2"] * r["n"] * r["lambda"] > 1 for r in inside)
        falls = k0 / n0 > k1 / n1 and p < 0.05
        rises = k0 / n0 < k1 / n1 and p < 0.05
        return self._claim(
            "Theorem 1, the probability",
            "probability",
            "share of repetitions with gap > σ²/(nλ), by m, at the optimal λ",
            listed({f"m = {m}": f"{k} of {n}" for m, (k, n) in counts.items()}),
            HOLDS if falls or never else FAILS if rises else OPEN,
            f"Fisher's exact test of the smallest m against the largest: p = {p:.2g}.",
        )

    def _assumption(self, rows: Sequence[Row]) -> Claim:
        """A1 (i) at the paper's own m and the largest n."""
        found = {}
        for reading, words in LAMBDAS.items():
            part = self._part(rows, reading)
            n = max(r["n"] for r in part)
            last = [r for r in part if r["n"] == n]
            held = [r["a1_low"] >= 0.5 and r["a1_high"] <= 1.5 for r in last]
            s = _range(r["s_lambda"] for r in last)
            name = f"{words} (n = {n}, m = {last[0]['m']}, s_λ = {s})"
            found[name] = share(sum(held), len(held))
        return self._claim(
            "Assumption A1 (i) at the paper's m",
            "a1_i",
            "share of repetitions in which it holds (holds: above 0.9)",
            *judged(found, lambda e: below(e * -1, -0.9)),
            "Where it fails, Theorem 1 says nothing about the experiment, and single sketches with "
            "a very large gap are to be expected.",
        )

    def _sigma(self, rows: Sequence[Row]) -> list[Claim]:
        means = means_by_value(self._part(rows, "optimal"), "gap_v2", arithmetic)
        slope = rate(list(means), [e.mean for e in means.values()])
        text = "exponent of σ, the same data and sketches for every σ"
        return [
            self._claim(
                "almost linearly in σ",
                "sigma",
                f"{text} (holds: within 1 ± 0.25)",
                str(slope),
                within(slope, 0.75, 1.25),
                "V1 and V2 are both exactly proportional to σ².",
            ),
            self._claim(
                "as the theory says in σ",
                "sigma_theory",
                f"{text} (holds: within 2 ± 0.25)",
                str(slope),
                within(slope, 1.75, 2.25),
                "The bound of Theorem 1 is proportional to σ².",
            ),
        ]


def _inverse(found: Estimate) -> Estimate:
    return Estimate(1 / found.mean, 1 / found.high, 1 / found.low)


def _range(values: Any) -> str:
    found = sorted(set(values))
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
