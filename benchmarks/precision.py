"""How far float32 kernel products with float64 algebra carry: the error of V2 against λ/E₁."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import common
import numpy as np
from baselines import DATA, SETS

from sketchridge.backends import NumpyTiles
from sketchridge.basis import Basis, basis_of
from sketchridge.factor import factorize, sample_of
from sketchridge.kernels import KERNELS, DistanceKernel, Kernel
from sketchridge.precision import magnified
from sketchridge.query import AtPoints
from sketchridge.ridge import Ridge
from sketchridge.sketches import as_sketch

Array = np.ndarray
ROWS = 4000
POINTS = 200
SIZE = 512
USED = 0.1  # the largest model error with which dtype="auto" still chooses float32
DECADES = range(-1, -8, -1)
DOCS = Path(__file__).resolve().parents[1] / "docs"
OFFSET = "uniform + 1e4"
EVERYWHERE = ("uniform 5-d", "uniform 1-d", "flights", "clustered")
RADIAL = {
    "uniform 5-d": 0.5,
    "uniform 1-d": 0.2,
    "flights": 3.6,
    "clustered": 1.0,
    OFFSET: 0.5,
}  # bandwidths
COMBINATIONS = {
    "gaussian": (*EVERYWHERE, OFFSET),
    "matern32": EVERYWHERE,
    "matern52": (*EVERYWHERE, OFFSET),
    "laplacian": EVERYWHERE,
    "polynomial": ("uniform 5-d", "flights", "clustered"),
    "linear": ("uniform 5-d", "flights", "clustered", OFFSET),
}
SKETCHES = ("rpcholesky", "gaussian")
VARIANCES = "variances"
EVERYTHING = "fit and variances"
INTRODUCTION = """\
Kernel products dominate the cost, and single precision halves it. The m×m algebra is float64
whatever `dtype` says. Rounding in the products is magnified by E₁/λ (E₁ the largest eigenvalue of
K): the tables show by how much V2 is off.

The model of `precision.magnified` is `ε·max(4, u²)·E₁/λ`, with ε = 1.2e-7 and u² the
largest squared norm of a training point in the kernel's coordinates (centered and divided by the
bandwidth; 0 for kernels that are not functions of a Euclidean distance); it is infinite where
squares of kernel values could leave the range of float32. `dtype="auto"` fits in float64 and then
uses float32

- for the variances, where the model is at most `sketch_tol`/100: rounding then costs a hundredth of
  what the sketch may;
- for the steps of a refinement, where it is at most 0.1. A step only has to come closer: every
  residual that is judged, and so every bound, is taken afresh in float64, and steps that no longer
  help are followed by steps in float64;
- for the first residual of a refinement, where it is at most 2·`tol`.

`dtype_` says what was used for the variances. `dtype="float32"` is obeyed at any λ; the second
table shows what that means."""
HEADS = {
    VARIANCES: '## float32 variances after a float64 fit, as `dtype="auto"` has them',
    EVERYTHING: '## `dtype="float32"`: the sketched sums G Sᵀ in float32 too\n\n'
    "Landmark sketches such as rpcholesky are factorized in float64 in any case: their rows would "
    "be those above.",
}


@dataclass(frozen=True)
class Cell:
    """The worst relative error of float32 V2 at one λ, beside the model."""

    kernel: str
    data: str
    sketch: str
    single: str  # what was in single precision
    spread: float
    decade: int
    error: float
    model: float

    def __str__(self) -> str:
        return (
            f"{self.kernel}, {self.data}, {self.sketch}, λ/E₁ = 1e{self.decade}, "
            f"float32 {self.single}"
        )

    @property
    def share(self) -> float:
        """Of the model; 0 where that is infinite."""
        return self.error / self.model


def draw(name: str, folder: Path) -> tuple[Array, Array]:
    """Training rows and test points of a data set."""
    count = ROWS + POINTS
    shared = {"uniform 5-d": "uniform", OFFSET: "uniform"}.get(name, name)
    X = (
        np.random.default_rng(0).uniform(size=(count, 1))
        if name == "uniform 1-d"
        else SETS[shared].rows(count, folder)
    )
    X = X + 1e4 if name == OFFSET else X
    return X[POINTS:], X[:POINTS]


def fitted_kernel(name: str, data: str, X: Array) -> Kernel:
    kernel = KERNELS[name]()
    return (
        kernel.with_bandwidth(RADIAL[data]) if isinstance(kernel, DistanceKernel) else kernel
    ).fitted(X)


def fitted_basis(kernel: Kernel, X: Array, sketch: str, precision: str) -> Basis:
    """As an estimator with this dtype builds it."""
    backend = NumpyTiles()
    sample = sample_of(backend.place(kernel, kernel.coordinates(X)), np.ones(len(X)))
    factor = factorize(sample, as_sketch(sketch, n=len(X), seed=0), precision).grown(SIZE)
    return basis_of(factor, backend.tall(np.zeros((len(X), 1))))


def v2(basis: Basis, lam: float, precision: str, X_test: Array) -> Array:
    points = basis.sample.points
    query = AtPoints(points.backend.place(points.kernel, points.kernel.coordinates(X_test)))
    return Ridge(basis, lam, None, precision, budget=0.0).residual_form(query, 1.0)


def measure(kernel: str, data: str, sketch: str, folder: Path) -> Iterator[Cell]:
    """A cell for each decade of λ/E₁; for the dense sketch another one, with a float32 fit."""
    X, X_test = draw(data, folder)
    k = fitted_kernel(kernel, data, X)
    double = fitted_basis(k, X, sketch, "float64")
    bases = {VARIANCES: double}
    if sketch == "gaussian":
        bases[EVERYTHING] = fitted_basis(k, X, sketch, "float32")
    scales = double.sample.scales
    for decade in DECADES:
        lam = 10.0**decade * double.largest
        exact = v2(double, lam, "float64", X_test)
        model = magnified("float32", scales, 10.0**-decade)
        for single, basis in bases.items():
            error = float(np.abs(v2(basis, lam, "float32", X_test) / exact - 1).max())
            yield Cell(kernel, data, sketch, single, scales.largest, decade, error, model)


def measure_all(folder: Path) -> list[Cell]:
    cells = []
    for kernel, sets in COMBINATIONS.items():
        for data, sketch in product(sets, SKETCHES):
            new = list(measure(kernel, data, sketch, folder))
            print(
                f"{kernel}, {data}, {sketch}: at most {max(cell.share for cell in new):.2g} of "
                "the model",
                flush=True,
            )
            cells += new
    return cells


def table(cells: list[Cell]) -> str:
    """A row for each kernel, set and sketch; a column for each decade."""
    rows: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.kernel, cell.data, cell.sketch), []).append(cell)
    return common.markdown_table([_row(group) for group in rows.values()])


def _row(cells: list[Cell]) -> dict[str, object]:
    first = cells[0]
    return {
        "kernel": first.kernel,
        "data": first.data,
        "sketch": first.sketch,
        **{f"λ/E₁ = 1e{cell.decade}": f"{cell.error:.0e}" for cell in cells},
        "model at 1e-1": f"{first.model:.0e}" if np.isfinite(first.model) else "∞",
        "error/model": f"{max(cell.share for cell in cells):.1g}",
    }


def claims(cells: list[Cell]) -> list[common.Claim]:
    variances, everything = (
        [cell for cell in cells if cell.single == single] for single in (VARIANCES, EVERYTHING)
    )
    used = [cell for cell in variances if cell.model <= USED]
    return [
        _claim(f'float32 variances, model ≤ {USED:g} (where `dtype="auto"` may use them)', used),
        _claim("float32 variances, any λ", variances),
        _claim('`dtype="float32"` with a dense sketch, any λ', everything),
    ]


def _claim(where: str, cells: list[Cell]) -> common.Claim:
    worst = max(cells, key=lambda cell: cell.share)
    return common.Claim(
        f"{where}: the error never exceeds the model: at most {worst.share:.2g} of it ({worst})",
        worst.share <= 1,
    )


def exceeded(cells: list[Cell]) -> str:
    """Every case in which the error is above the model."""
    lines = [
        f"- {cell}: {cell.error:.1e}, {cell.share:.2g} of the model"
        for cell in cells
        if cell.share > 1
    ]
    return "## Above the model\n\n" + ("\n".join(lines) or "None.")


def csv_rows(cells: list[Cell]) -> list[dict[str, object]]:
    return [{**vars(cell), "share": cell.share} for cell in cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the flights")
    parser.add_argument(
        "--results", type=Path, default=common.RESULTS, help="folder of the CSV file"
    )
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page")
    options = parser.parse_args()
    cells = measure_all(options.data)
    setting = (
        f"Entries are the worst relative error over {POINTS} points, against float64 products with "
        f"the same sketch; n = {ROWS:,}, m = {SIZE:,} (or the numerical rank). A larger sketch "
        "resolves smaller eigenvalues, and so shows larger errors at small λ: with m = 1,024 up to "
        "2e-1 at λ/E₁ = 1e-7 on 5-d data. The model grows tenfold with every column; the last "
        "column is the largest share of it that was reached. Made by `python "
        "benchmarks/precision.py`; all figures are in `benchmarks/results/precision.csv`."
    )
    common.write_csv(options.results / "precision.csv", csv_rows(cells))
    tables = [
        part
        for single, head in HEADS.items()
        for part in (head, table([c for c in cells if c.single == single]))
    ]
    parts = [INTRODUCTION, setting, *tables, exceeded(cells)]
    common.write_report(options.docs / "precision.md", "Single precision", parts, claims(cells))


if __name__ == "__main__":
    main()
