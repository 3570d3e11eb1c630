"""How s_λ grows with n at the optimal λ, for the eigenvalues of a kernel and for those supposed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sketchridge.paper.base import Row
from sketchridge.paper.readings.quotes import QUOTES
from sketchridge.paper.statistics import Estimate, rate
from sketchridge.paper.verdicts import Claim, judged, within

__all__ = ["dimension_claim"]

POWER = 2.0  # p of the Gaussian kernel, as Example 2 has it
STEPS = (
    "A local exponent of a step function: no seed enters, so there is no interval. By the "
    "eigenvalues of the kernel on an even grid."
)


def dimension_claim(panel: str, decay: str, rows: Sequence[Row]) -> Claim:
    """Of rows of n, λ and s_λ; the Gaussian kernel's eigenvalues are told from p = 2 itself."""
    polynomial = decay == "polynomial"
    target, near = (1 / 5, 0.05) if polynomial else (1 / 2, 0.1)
    n = np.array([r["n"] for r in rows], dtype=float)
    x = n if polynomial else np.log(n)
    found = {"": rate(x, [r["s_lambda"] for r in rows]).mean}
    sizes = f"over s_λ = {rows[0]['s_lambda']:g} to {rows[-1]['s_lambda']:g}"
    remark = STEPS
    if not polynomial:
        supposed = (-np.log([r["lambda"] for r in rows])) ** (1 / POWER)
        found = {
            "the Gaussian kernel as printed": found[""],
            f"eigenvalues e^(−αk^p) with p = {POWER:g}": rate(x, supposed).mean,
        }
        remark += (
            " The sentence has two parts. From μ_k ≍ e^(−αk^p) the order of s_λ follows, and at "
            "these n the exponent is then near 1/p. That p is 2 for this kernel is what is not so "
            "at these k: see “formulas: eigenvalues of the Gaussian kernel”, on the same range."
        )
    measured, verdict = judged(
        {
            name: f"{slope:.3g}" + ("" if "e^" in name else f" {sizes}")
            for name, slope in found.items()
        },
        {
            name: within(Estimate(slope, slope, slope), target - near, target + near)
            for name, slope in found.items()
        },
    )
    return Claim(
        f"{panel}: s_λ",
        *QUOTES[f"s_{decay}"],
        f"exponent of {'n' if polynomial else 'log n'} of s_λ at the optimal λ, n = 10⁴ … 10¹⁰ "
        f"(holds: within {target:g} ± {near:g})",
        measured.removeprefix(": "),
        verdict,
        remark,
    )
