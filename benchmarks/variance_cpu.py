"""Fit and 1,000 predictive variances on the CPU.

This library is compared with scikit-learn's GPR, dense V1 and GPyTorch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import baselines
import common
import numpy as np
from baselines import Data
from settings import sketched_ridge

from sketchridge import SketchedKernelRidge

BANDWIDTH = 0.5
LAM = 1e-3
FEATURES = 5
POINTS = 1000
FIXED_SIZE = 256
HEADLINE = 16_000
OURS = "sketchridge"
SETTING = {"bandwidth": BANDWIDTH, "lam": LAM}
GROWTH = "Growth exponents p of time ~ n^p, over the sizes that ran with the default threads:"

Array = np.ndarray


@dataclass(frozen=True)
class Method:
    """A contender.

    ``run`` fits and returns the model with its variances; ``check`` returns, for unit noise, the
    variances to compare under the name of the exact one, "v1" or "gp".
    """

    label: str
    run: Callable[[Data], tuple[Any, Array]]
    check: Callable[[Data, Any, Array], dict[str, Any]]
    fit: Callable[[Data], Any] | None = None
    cheap: bool = False
    largest: float = np.inf


@dataclass
class Cell:
    """What one method did at one size."""

    n: int
    method: Method
    times: list[float] = field(default_factory=list)
    fit_times: list[float] = field(default_factory=list)
    peak: float = float("nan")
    checked: dict[str, Any] = field(default_factory=dict)
    errors: Array | None = None
    note: str = ""
    default_threads: bool = True

    @property
    def seconds(self) -> float:
        return common.median(self.times) if self.times else float("nan")


def problem(n: int) -> Data:
    rng = np.random.default_rng(0)
    X_test = rng.uniform(size=(POINTS, FEATURES))
    X = rng.uniform(size=(n, FEATURES))
    return Data(X, np.sin(3 * X.sum(axis=1)) + 0.1 * rng.standard_normal(n), X_test)


@dataclass(frozen=True)
class Sketched:
    """The settings in which our contenders differ."""

    sketch: str = "auto"
    sketch_size: Any = "auto"
    sketch_tol: float = 0.1
    kind: str = "v2"

    def fit(self, data: Data) -> SketchedKernelRidge:
        model = sketched_ridge(
            bandwidth=BANDWIDTH,
            alpha=len(data.X) * LAM,
            sketch=self.sketch,
            sketch_size=self.sketch_size,
            sketch_tol=self.sketch_tol,
        )
        return model.fit(data.X, data.y)

    def run(self, data: Data) -> tuple[Any, Array]:
        model = self.fit(data)
        return model, model.variance(data.X_test, kind=self.kind)

    def check(self, data: Data, model: Any, _: Array) -> dict[str, Any]:
        gap = f"gap {model.gap_:.3f}, {model.dtype_} variances"
        found = model.set_params(noise_variance=1.0).fit(data.X, data.y)
        estimate = found.variance(data.X_test, kind=self.kind)
        return {"v1": estimate.tolist(), "note": f"{self.kind}, m = {model.sketch_size_}, {gap}"}


def check_dense(data: Data, model: Any, v1: Array) -> dict[str, Any]:
    return {"v1": v1.tolist(), "gp": model.variance(data.X_test, kind="gp").tolist()}


def check_gp(_: Data, model: Any, variance: Array) -> dict[str, Any]:
    return {"gp": variance.tolist()}


def sketched(label: str, setting: Sketched) -> Method:
    return Method(label, setting.run, setting.check, setting.fit, cheap=True)


METHODS = {
    OURS: sketched("sketchridge, sketch_tol=0.02", Sketched(sketch_tol=0.02, kind="vbar")),
    "landmarks": sketched(
        f"sketchridge, {FIXED_SIZE} landmarks", Sketched("landmarks", FIXED_SIZE)
    ),
    "rpcholesky": sketched(
        f"sketchridge, RPCholesky {FIXED_SIZE}", Sketched("rpcholesky", FIXED_SIZE)
    ),
    "dense": Method("dense V1", partial(baselines.run_dense, **SETTING), check_dense),
    "gpr": Method("scikit-learn GPR", partial(baselines.run_gpr, **SETTING), check_gp),
    "gpytorch": Method(
        "GPyTorch exact",
        partial(baselines.run_gpytorch, love=False, **SETTING),
        check_gp,
        largest=8000,
    ),
    "love": Method(
        "GPyTorch LOVE", partial(baselines.run_gpytorch, love=True, **SETTING), check_gp
    ),
}
FIXED = ("landmarks", "rpcholesky")


def measure(name: str, n: int, repeats: int) -> dict[str, Any]:
    """Time a method after a small warm-up; runs in a process of its own."""
    method = METHODS[name]
    data = problem(n)
    last: list[tuple[Any, Array]] = []
    method.run(problem(1000))

    def once() -> None:
        last.clear()
        last.append(method.run(data))

    times, peak = common.with_peak_memory(lambda: common.timed(once, repeats))
    fit_times = common.timed(partial(method.fit, data), repeats) if method.fit else []
    return {
        "times": times,
        "fit_times": fit_times,
        "peak": peak,
        "checked": method.check(data, *last[0]),
    }


def measured_cell(name: str, n: int, repeats: int) -> Cell:
    """A method at a size; where GPR's process dies it is tried again, and then with one thread."""
    method = METHODS[name]
    if n > method.largest:
        return Cell(n, method, note=f"skipped above n = {method.largest:,}: takes minutes")
    repeats = repeats if method.cheap or n < 8000 else min(repeats, 3) if n < HEADLINE else 1
    run = baselines.stubbornly if name == "gpr" else baselines.once
    attempt = run(measure, name, n, repeats)
    return Cell(
        n, method, **attempt.result, note=attempt.note, default_threads=attempt.default_threads
    )


def compare(cells: dict[str, Cell]) -> None:
    """Relative errors of one size's variances against the exact ones.

    V2 is compared with V1, and posterior variances with gp.
    """
    exact = cells["dense"].checked
    for name, cell in cells.items():
        kind = next((kind for kind in ("v1", "gp") if kind in cell.checked), None)
        if name != "dense" and kind is not None and exact:
            cell.errors = np.abs(np.array(cell.checked[kind]) / np.array(exact[kind]) - 1)
        cell.note = cell.note or cell.checked.get("note", "")


def gpr_times(cells: dict[int, dict[str, Cell]], n: int) -> list[tuple[float, str]]:
    """GPR's time at n and how it was found.

    It is measured or, where GPR died, the time with one thread and two extrapolations.
    """
    cell = cells[n]["gpr"]
    if cell.default_threads:
        return [(cell.seconds, "measured with the default threads")]
    smaller = [
        k for k in cells if k < n and cells[k]["gpr"].default_threads and cells[k]["gpr"].times
    ]
    options = [(cell.seconds, "measured with one BLAS thread")] if cell.times else []
    if smaller:
        k = max(smaller)
        estimate = cells[k]["gpr"].seconds * (n / k) ** 3
        options.append(
            (
                estimate,
                f"estimated for the default threads as the time at n = {k:,} times {n / k:g}³",
            )
        )
        growth = cells[n]["dense"].seconds / cells[k]["dense"].seconds
        options.append(
            (
                cells[k]["gpr"].seconds * growth,
                f"estimated as the time at n = {k:,} times {growth:.2f}, as dense V1 grew",
            )
        )
    return options


def baseline_sentence(cells: dict[int, dict[str, Cell]]) -> str:
    """Which GPR time the headline ratio is taken to."""
    if HEADLINE not in cells:
        return f"This run has no n = {HEADLINE:,}."
    options = [f"{seconds:.1f} s {how}" for seconds, how in gpr_times(cells, HEADLINE)]
    found = "; ".join(options) or "no time"
    return f"GPR at n = {HEADLINE:,}: {found}. The smallest is the baseline of the headline ratio."


def table_rows(cells: dict[int, dict[str, Cell]]) -> list[dict[str, object]]:
    return [
        _row(cell, by_name[OURS].seconds) for by_name in cells.values() for cell in by_name.values()
    ]


def _row(cell: Cell, ours: float) -> dict[str, object]:
    worst, typical = (
        ("–", "–")
        if cell.errors is None
        else (_percent(cell.errors.max()), _percent(np.median(cell.errors)))
    )
    return {
        "n": f"{cell.n:,}",
        "method": cell.method.label,
        "time (s)": f"{cell.seconds:.3g}" if cell.times else "–",
        "repeats": len(cell.times) or "–",
        "time / ours": f"{cell.seconds / ours:.1f}×" if cell.times else "–",
        "fit alone (s)": f"{common.median(cell.fit_times):.3g}" if cell.fit_times else "–",
        "worst error": worst,
        "median error": typical,
        "peak (MiB)": f"{cell.peak:.0f}" if cell.times else "–",
        "note": cell.note,
    }


def csv_rows(cells: dict[int, dict[str, Cell]]) -> list[dict[str, object]]:
    return [
        {
            "n": cell.n,
            "method": cell.method.label,
            "median_s": cell.seconds,
            "times_s": " ".join(f"{t:.6f}" for t in cell.times),
            "fit_times_s": " ".join(f"{t:.6f}" for t in cell.fit_times),
            "worst_error": "" if cell.errors is None else cell.errors.max(),
            "median_error": "" if cell.errors is None else np.median(cell.errors),
            "peak_mib": round(cell.peak, 1),
            "note": cell.note,
        }
        for by_name in cells.values()
        for cell in by_name.values()
    ]


def timed_cells(cells: dict[int, dict[str, Cell]], name: str) -> list[Cell]:
    return [by_name[name] for by_name in cells.values() if by_name[name].times]


def exponents(cells: dict[int, dict[str, Cell]]) -> tuple[str, dict[str, float]]:
    """A table of growth exponents, and those of the fit alone by method.

    The table has the whole time and, where it was measured, the fit alone.
    """
    rows = []
    fits = {}
    for name in next(iter(cells.values())):
        column = [cell for cell in timed_cells(cells, name) if cell.default_threads]
        sizes = [cell.n for cell in column]
        whole = common.growth_exponent(sizes, [cell.seconds for cell in column])
        if METHODS[name].fit:
            fits[name] = common.growth_exponent(
                sizes, [common.median(cell.fit_times) for cell in column]
            )
        rows.append(
            {
                "method": METHODS[name].label,
                "fit + variances": f"{whole:.2f}",
                "fit": f"{fits[name]:.2f}" if name in fits else "–",
            }
        )
    return common.markdown_table(rows), fits


def claims(cells: dict[int, dict[str, Cell]], fits: dict[str, float]) -> list[common.Claim]:
    return [headline_claim(cells), *(_growth_claim(name, fits[name], len(cells)) for name in FIXED)]


def headline_claim(cells: dict[int, dict[str, Cell]]) -> common.Claim:
    sentence = (
        f"at n = {HEADLINE:,} at least 80 times faster than GPR, with a worst error of at most 3%"
    )
    ours = cells[HEADLINE][OURS] if HEADLINE in cells else None
    if ours is None or ours.errors is None:
        return common.Claim(sentence, None)
    gpr, how = min(gpr_times(cells, HEADLINE), default=(float("nan"), "not measured"))
    ratio = gpr / ours.seconds
    worst = ours.errors.max()
    return common.Claim(
        f"{sentence}: {ratio:.1f}×, {_percent(worst)} (GPR {gpr:.1f} s, {how}; ours "
        f"{ours.seconds:.2f} s)",
        None if np.isnan(ratio) else bool(ratio >= 80 and worst <= 0.03),
    )


def _growth_claim(name: str, exponent: float, sizes: int) -> common.Claim:
    sentence = f"{METHODS[name].label}: fit time grows no faster than n^1.2: n^{exponent:.2f}"
    return common.Claim(sentence, bool(exponent <= 1.2) if sizes > 2 else None)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share >= 1e-6 else "< 0.0001%"


def run_all(sizes: Sequence[int], repeats: int) -> dict[int, dict[str, Cell]]:
    names = [name for name in METHODS if find_spec("gpytorch") or name not in ("gpytorch", "love")]
    cells: dict[int, dict[str, Cell]] = {}
    for n in sizes:
        cells[n] = {}
        for name in names:
            cells[n][name] = cell = measured_cell(name, n, repeats)
            print(f"n = {n:,}, {cell.method.label}: {cell.seconds:.3g} s {cell.note}", flush=True)
        compare(cells[n])
    return cells


def figure(path: Path, cells: dict[int, dict[str, Cell]]) -> None:
    series = {}
    for name in next(iter(cells.values())):
        column = timed_cells(cells, name)
        alone = [f"{cell.n:,}" for cell in column if not cell.default_threads]
        label = METHODS[name].label + (f" (one thread at {', '.join(alone)})" if alone else "")
        if column:
            series[label] = ([cell.n for cell in column], [cell.seconds for cell in column])
    common.loglog_figure(
        path, series, title=f"Fit and {POINTS:,} predictive variances", ylabel="seconds"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 4000, 8000, HEADLINE])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="n = 1000, 2000, 4000 with 3 repeats: a trial, not a result",
    )
    parser.add_argument(
        "--results", type=Path, default=common.RESULTS, help="folder of the table and the figure"
    )
    options = parser.parse_args()
    sizes, repeats = (
        ([1000, 2000, 4000], 3) if options.quick else (sorted(options.sizes), options.repeats)
    )
    cells = run_all(sizes, repeats)
    growth, fits = exponents(cells)
    setting = (
        f"d = {FEATURES} uniform on [0, 1], y = sin(3 Σx) + 0.1 noise, Gaussian kernel with "
        f"bandwidth {BANDWIDTH}, λ = {LAM}, {POINTS:,} test points, float64 data. Time is that of "
        "fit and variances together, the median of as many repeats as said; each method runs in "
        "its own process, after a warm-up. Errors are relative: of V2 against V1 for sketchridge, "
        "of the posterior variance against the exact one for GPR and GPyTorch. Peak is the growth "
        "of the process over what it held before. GPyTorch exact factorizes by Cholesky, which is "
        "faster here than its default of conjugate gradients; LOVE has its default settings."
    )
    parts = [
        common.machine(),
        setting,
        common.markdown_table(table_rows(cells)),
        baseline_sentence(cells),
        GROWTH,
        growth,
    ]
    common.write_csv(options.results / "variance_cpu.csv", csv_rows(cells))
    figure(options.results / "variance_cpu.png", cells)
    common.write_report(
        options.results / "variance_cpu.md",
        "Fit and predictive variances on the CPU",
        parts,
        claims(cells, fits),
    )


if __name__ == "__main__":
    main()
