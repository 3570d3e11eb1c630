"""Error of the variance against time for 100 test points.

V2, V3 and refinement are compared with dense V1, scikit-learn's GPR and GPyTorch's LOVE.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import baselines
import common
import numpy as np
from baselines import SETS, Data, DataSet
from settings import exact_ridge, sketched_ridge

from sketchridge import ExactKernelRidge, SketchedKernelRidge

Array = np.ndarray
POINTS = 100
SIZES = (64, 128, 256, 512, 1024)
TOLERANCES = (1e-1, 1e-2, 1e-3)
STEPS = (0, 1, 2, 3)
REFINED = 768  # sketch rows where V1 is refined to a tolerance
COUNTING = 2048  # sketch rows with which the eigenvalues above λ are counted
LARGE = 8000
HEADLINE = 16_000
TIGHT = 1e-3
V2 = "V2"
V3 = "V3"
STEPPED = "V2 +"
V1 = "V1"
DENSE = "dense V1"
GPR = "scikit-learn GPR"
LOVE = "GPyTorch LOVE"
FLOOR = 1e-7


@dataclass(frozen=True)
class Look:
    """How a family is drawn.

    The name stands at one end of the line; ``place`` and ``label`` are the distances, in points,
    of the name and of the labels from the marks they belong to.
    """

    name: str
    color: str
    marker: str
    place: tuple[float, float]
    end: int = 0
    label: tuple[float, float] = (8, 5)


LOOKS = {
    V2: Look("V2 by m", "#d1495b", "o", (0, 15)),
    V3: Look("V3 by m", "#e08e45", "v", (0, 14), label=(0, -11)),
    STEPPED: Look("V2 + steps", "#4f9dc4", "s", (4, 15), end=1, label=(9, 0)),
    V1: Look("V1 by tol", "#0b6e4f", "D", (0, -15), end=-1, label=(-3, 11)),
    DENSE: Look("dense V1 (exact)", "#2e4057", "*", (0, -13)),
    GPR: Look("GPR (exact)", "#8d6a9f", "P", (0, 14)),
    LOVE: Look("LOVE", "#7a7a7a", "X", (0, 14)),
}


@dataclass(frozen=True)
class Method:
    """A contender: ``fit`` and then ``variance`` are timed.

    Its error is taken against the exact variance of this ``kind``.
    """

    family: str
    label: str
    fit: Callable[[Data], Any]
    variance: Callable[[Any, Array], Array]
    kind: str = "v1"
    slow: bool = False


@dataclass
class Cell:
    """What one method did on one set at one size."""

    data: str
    n: int
    method: Method
    fit_times: list[float] = field(default_factory=list)
    variance_times: list[float] = field(default_factory=list)
    variances: dict[str, list[float]] = field(default_factory=dict)
    note: str = ""
    worst: float = float("nan")
    typical: float = float("nan")

    @property
    def seconds(self) -> float:
        times = [a + b for a, b in zip(self.fit_times, self.variance_times, strict=True)]
        return common.median(times) if times else float("nan")

    @property
    def fit_seconds(self) -> float:
        return common.median(self.fit_times) if self.fit_times else float("nan")

    @property
    def variance_seconds(self) -> float:
        return common.median(self.variance_times) if self.variance_times else float("nan")


def fit_sketched(
    data: Data, *, bandwidth: float, lam: float, sketch_size: int
) -> SketchedKernelRidge:
    model = sketched_ridge(
        bandwidth=bandwidth,
        alpha=len(data.X) * lam,
        sketch="rpcholesky",
        sketch_size=sketch_size,
        noise_variance=1.0,
    )
    return model.fit(data.X, data.y)


def fit_dense(data: Data, *, bandwidth: float, lam: float) -> ExactKernelRidge:
    model = exact_ridge(bandwidth=bandwidth, alpha=len(data.X) * lam, noise_variance=1.0)
    return model.fit(data.X, data.y)


def ask(model: Any, X_test: Array, **options: Any) -> Array:
    return model.variance(X_test, **options)


def already_there(fitted: tuple[Any, Array], _: Array) -> Array:
    """The variances of packages whose fit and variances are timed as one."""
    return fitted[1]


def refined(setting: dict[str, float], tol: float) -> Method:
    """V1 to a tolerance, with a sketch of fixed size.

    Where refinement follows there is no need to measure the gap.
    """
    return Method(
        V1,
        f"tol = {tol:g}",
        partial(fit_sketched, sketch_size=REFINED, **setting),
        partial(ask, kind="v1", tol=tol),
    )


def steps_label(k: int) -> str:
    return f"{k} step" if k == 1 else f"{k} steps"


def scaling_methods(setting: dict[str, float]) -> list[Method]:
    return [
        Method(DENSE, "", partial(fit_dense, **setting), partial(ask, kind="v1"), slow=True),
        refined(setting, TIGHT),
    ]


def trade_off_methods(setting: dict[str, float], size: int) -> list[Method]:
    """Everything but what is in `scaling_methods`.

    Steps are taken with a sketch of ``size`` rows.
    """
    fixed = {m: partial(fit_sketched, sketch_size=m, **setting) for m in (*SIZES, size)}
    methods = [
        Method(kind.upper(), f"m = {m}", fixed[m], partial(ask, kind=kind))
        for kind in ("v2", "v3")
        for m in SIZES
    ]
    methods += [
        Method(STEPPED, steps_label(k), fixed[size], partial(ask, kind="v2", refine=k))
        for k in STEPS
    ]
    methods += [refined(setting, tol) for tol in TOLERANCES if tol != TIGHT]
    methods += [
        Method(GPR, "", partial(baselines.run_gpr, **setting), already_there, kind="gp", slow=True)
    ]
    if find_spec("gpytorch"):
        love = partial(baselines.run_gpytorch, love=True, **setting)
        methods += [Method(LOVE, "", love, already_there, kind="gp", slow=True)]
    return methods


def measure(data_name: str, n: int, folder: Path, method: Method, repeats: int) -> dict[str, Any]:
    """Time a method after a small warm-up; runs in a process of its own."""
    problem = partial(SETS[data_name].problem, points=POINTS, folder=folder)
    data = problem(n)
    fit_times = []
    variance_times = []
    small = problem(min(n, 2000))
    method.variance(method.fit(small), small.X_test)
    for _ in range(repeats):
        start = time.perf_counter()
        model = method.fit(data)
        fitted = time.perf_counter()
        variance = method.variance(model, data.X_test)
        fit_times.append(fitted - start)
        variance_times.append(time.perf_counter() - fitted)
    variances = {method.kind: variance.tolist()}
    if method.family == DENSE:
        variances["gp"] = model.variance(data.X_test, kind="gp").tolist()
    note = f"m = {model.sketch_size_}" if isinstance(model, SketchedKernelRidge) else ""
    note += f", {model.dtype_}" if method.family == V2 else ""
    return {
        "fit_times": fit_times,
        "variance_times": variance_times,
        "variances": variances,
        "note": note,
    }


def count_eigenvalues(data_name: str, n: int, folder: Path, setting: dict[str, float]) -> int:
    """s_λ, by a sketch that is large enough."""
    return fit_sketched(
        SETS[data_name].problem(n, POINTS, folder), sketch_size=min(n, COUNTING), **setting
    ).s_lambda_


def measured_cell(data_name: str, n: int, folder: Path, method: Method, repeats: int) -> Cell:
    """A method at a size.

    All times are compared with that of dense V1, which therefore runs with the default number of
    BLAS threads and with one; the faster run counts.
    """
    runs = {GPR: [baselines.stubbornly], DENSE: [baselines.once, baselines.one_thread]}.get(
        method.family, [baselines.once]
    )
    cells = []
    for run in runs:
        attempt = run(
            measure, data_name, n, folder, method, 1 if method.slow and n >= HEADLINE else repeats
        )
        notes = [attempt.result.pop("note", ""), attempt.note]
        cells.append(
            Cell(data_name, n, method, **attempt.result, note="; ".join(filter(None, notes)))
        )
    return min(
        (cell for cell in cells if cell.fit_times), key=lambda cell: cell.seconds, default=cells[0]
    )


def compare(cells: Sequence[Cell]) -> None:
    """Relative errors of one set and size against the dense variances of the same kind."""
    exact = next(cell.variances for cell in cells if cell.method.family == DENSE)
    for cell in cells:
        if cell.variances and exact and cell.method.family != DENSE:
            kind = cell.method.kind
            errors = np.abs(np.array(cell.variances[kind]) / np.array(exact[kind]) - 1)
            cell.worst = float(errors.max())
            cell.typical = float(np.median(errors))


def run_set(
    data_name: str, sizes: Sequence[int], folder: Path, repeats: int
) -> tuple[list[Cell], int]:
    """Dense V1 and V1 to 1e-3 at every size, everything at the largest; and s_λ there."""
    setting = _setting(SETS[data_name])
    s_lambda = common.isolated(count_eigenvalues, data_name, sizes[-1], folder, setting)
    cells: list[Cell] = []
    for n in sizes:
        extra = trade_off_methods(setting, min(2 * s_lambda, n)) if n == sizes[-1] else []
        new = []
        for method in scaling_methods(setting) + extra:
            new.append(cell := measured_cell(data_name, n, folder, method, repeats))
            print(
                f"{data_name}, n = {n:,}, {method.family} {method.label}: {cell.seconds:.3g} s "
                f"{cell.note}",
                flush=True,
            )
        compare(new)
        cells += new
    return cells, s_lambda


def _setting(data_set: DataSet) -> dict[str, float]:
    return {"bandwidth": data_set.bandwidth, "lam": data_set.lam}


def select(cells: Sequence[Cell], family: str, label: str = "", n: int | None = None) -> list[Cell]:
    """The cells of a family, with this label and size where they are given."""
    return [
        c
        for c in cells
        if c.method.family == family and label in ("", c.method.label) and n in (None, c.n)
    ]


def pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """V1 to 1e-3 and dense V1, at every size of one set."""
    return [
        (ours, select(cells, DENSE, n=ours.n)[0]) for ours in select(cells, V1, f"tol = {TIGHT:g}")
    ]


def break_even(ours: Cell, dense: Cell) -> str:
    """The number t of points at which a + b·t is equal for both: a to fit, b per point."""
    per_point = (ours.variance_seconds - dense.variance_seconds) / POINTS
    if not np.isfinite(per_point):
        return "not measured"
    ahead = dense.fit_seconds - ours.fit_seconds
    if per_point <= 0:
        return "never" if ahead > 0 else "not in this range"
    return f"{max(ahead, 0) / per_point:,.0f}"


def scaling_rows(results: dict[str, list[Cell]]) -> list[dict[str, object]]:
    return [
        {
            "data": name,
            "n": f"{ours.n:,}",
            "V1 to 1e-3 (s)": _number(ours.seconds),
            "dense V1 (s)": _number(dense.seconds),
            "dense / ours": f"{dense.seconds / ours.seconds:.2f}×",
            "worst error": _number(ours.worst),
            "ours: fit (s)": _number(ours.fit_seconds),
            "ours: per point (ms)": _number(1000 * ours.variance_seconds / POINTS),
            "dense: fit (s)": _number(dense.fit_seconds),
            "dense: per point (ms)": _number(1000 * dense.variance_seconds / POINTS),
            "break-even (points)": break_even(ours, dense),
        }
        for name, cells in results.items()
        for ours, dense in pairs(cells)
    ]


def trade_off_rows(results: dict[str, list[Cell]], n: int) -> list[dict[str, object]]:
    return [
        {
            "data": name,
            "method": f"{cell.method.family} {cell.method.label}".strip(),
            "time (s)": _number(cell.seconds),
            "repeats": len(cell.fit_times) or "–",
            "worst error": "exact" if cell.method.family == DENSE else _number(cell.worst),
            "median error": "exact" if cell.method.family == DENSE else _number(cell.typical),
            "note": cell.note,
        }
        for name, cells in results.items()
        for cell in sorted((c for c in cells if c.n == n), key=_rank)
    ]


def _rank(cell: Cell) -> tuple[int, float]:
    return list(LOOKS).index(cell.method.family), _order(cell)


def csv_rows(results: dict[str, list[Cell]]) -> list[dict[str, object]]:
    return [
        {
            "data": cell.data,
            "n": cell.n,
            "family": cell.method.family,
            "label": cell.method.label,
            "median_s": cell.seconds,
            "fit_times_s": " ".join(f"{t:.6f}" for t in cell.fit_times),
            "variance_times_s": " ".join(f"{t:.6f}" for t in cell.variance_times),
            "worst_error": cell.worst,
            "median_error": cell.typical,
            "note": cell.note,
        }
        for cells in results.values()
        for cell in cells
    ]


def claims(results: dict[str, list[Cell]]) -> list[common.Claim]:
    both = {name: pairs(cells) for name, cells in results.items()}
    return [
        _accuracy_claim(both),
        _speed_claim("faster than dense at every n ≥ 8,000", both, 1.0, LARGE),
        _speed_claim("at least 5 times faster than dense at n = 16,000", both, 5.0, HEADLINE),
        _step_claim(results),
    ]


def _accuracy_claim(both: dict[str, list[tuple[Cell, Cell]]]) -> common.Claim:
    worst = {
        name: max((ours.worst for ours, _ in cells), default=float("nan"))
        for name, cells in both.items()
    }
    figures = ", ".join(f"{name} {_number(error)}" for name, error in worst.items())
    sentence = (
        f"V1 with tol = {TIGHT:g}: worst relative error at most {TIGHT:g} on every set and at "
        f"every size: {figures}"
    )
    return common.Claim(
        sentence, _all([error <= TIGHT for error in worst.values()], list(worst.values()))
    )


def _speed_claim(
    sentence: str, both: dict[str, list[tuple[Cell, Cell]]], factor: float, smallest: int
) -> common.Claim:
    ratios = {
        f"{name} at {ours.n:,}": dense.seconds / ours.seconds
        for name, cells in both.items()
        for ours, dense in cells
        if ours.n >= smallest
    }
    figures = ", ".join(f"{where} {ratio:.2f}×" for where, ratio in ratios.items())
    holds = (
        _all([ratio >= factor for ratio in ratios.values()], list(ratios.values()))
        if len(both) == len(SETS)
        else None
    )
    return common.Claim(f"V1 with tol = {TIGHT:g}: {sentence}: {figures or 'no such size'}", holds)


def _step_claim(results: dict[str, list[Cell]]) -> common.Claim:
    gains = {}
    for name, cells in results.items():
        before, after = (select(cells, STEPPED, steps_label(k))[0].worst for k in (0, 1))
        gains[name] = before / after
    figures = ", ".join(f"{name} {gain:.1f}×" for name, gain in gains.items())
    sentence = (
        "rpcholesky at m = 2·s_λ: refine=1 reduces the worst error at least 10 times against "
        f"refine=0 on every set: {figures}"
    )
    return common.Claim(
        sentence, _all([gain >= 10 for gain in gains.values()], list(gains.values()))
    )


def _all(conditions: Sequence[bool], figures: Sequence[float]) -> bool | None:
    """Whether all hold; None where a figure is missing."""
    return bool(all(conditions)) if figures and np.isfinite(figures).all() else None


def _number(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else "–"


def figure(path: Path, results: dict[str, list[Cell]], n: int) -> None:
    """A panel a set: worst error against time, a line a family."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        1, len(results), figsize=(5.6 * len(results), 6), sharey=True, squeeze=False
    )
    for ax, (name, cells) in zip(axes[0], results.items(), strict=True):
        shown = [cell for cell in cells if cell.n == n and np.isfinite(cell.seconds)]
        times = [cell.seconds for cell in shown]
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="seconds, fit and variances together",
            xlim=(min(times) / 2, max(times) * 4),
        )
        ax.axhline(FLOOR, color="0.8", linewidth=0.8, zorder=0)
        draw_panel(ax, shown)
        ax.grid(color="0.94")
        ax.spines[["top", "right"]].set_visible(False)
        ax.xaxis.set_major_formatter(lambda t, _: f"{t:g}")
        ax.set_title(
            f"{name}: bandwidth {SETS[name].bandwidth:g}, λ = {SETS[name].lam:g}",
            loc="left",
            fontsize=11,
        )
    top = max(_height(cell) for cells in results.values() for cell in cells if cell.n == n)
    axes[0, 0].set(ylabel="worst relative error of the variance", ylim=(FLOOR / 5, 10 * top))
    fig.suptitle(
        f"{POINTS} predictive variances from n = {n:,} rows: lower left is better",
        x=0.01,
        ha="left",
        fontsize=13,
    )
    fig.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def draw_panel(ax: Any, cells: Sequence[Cell]) -> None:
    """A line for each family, with its name at one end.

    Each point has its m, its number of steps or its tolerance beside it.
    """
    for family, look in LOOKS.items():
        line = sorted(select(cells, family), key=_order)
        points = [(cell.seconds, _height(cell)) for cell in line]
        if not points:
            continue
        width = 2.6 if family == V1 else 1.6
        ax.plot(
            *zip(*points, strict=True),
            color=look.color,
            marker=look.marker,
            linewidth=width,
            markersize=7,
            zorder=6,
        )
        for cell, point in zip(line, points, strict=True):
            if cell.method.label == steps_label(0) or (
                family == V1 and cell is not line[-1] and _near(point, points[-1])
            ):
                continue
            _write(
                ax, cell.method.label.split("=")[-1].strip(), point, look, look.label, fontsize=8
            )
        _write(ax, look.name, points[look.end], look, look.place, fontsize=10, weight="bold")


def _near(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two points are too close for a label each."""
    return max(abs(np.log10(a / b)) for a, b in zip(one, other, strict=True)) < 0.3


def _write(
    ax: Any,
    text: str,
    point: tuple[float, float],
    look: Look,
    offset: tuple[float, float],
    **font: Any,
) -> None:
    from matplotlib.patheffects import withStroke

    side = "center" if offset[0] == 0 else "left" if offset[0] > 0 else "right"
    style = {
        "color": look.color,
        "path_effects": [withStroke(linewidth=2.5, foreground="white")],
        "zorder": 5,
        **font,
    }
    ax.annotate(text, point, offset, textcoords="offset points", ha=side, va="center", **style)


def _order(cell: Cell) -> float:
    """m, the number of steps or 1/tol, along which a line runs."""
    words = cell.method.label.split()
    number = float(words[-1] if "=" in words else words[0]) if words else 0.0
    return -number if cell.method.family == V1 else number


def _height(cell: Cell) -> float:
    """The worst error, with what is exact on the floor of the figure."""
    return FLOOR if cell.method.family == DENSE else max(cell.worst, FLOOR)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4000, LARGE, HEADLINE])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="n = 1000, 2000 once: a trial, not a result"
    )
    parser.add_argument("--data", type=Path, default=baselines.DATA, help="folder of the flights")
    parser.add_argument(
        "--results", type=Path, default=common.RESULTS, help="folder of the tables and the figure"
    )
    options = parser.parse_args()
    sizes, repeats = (
        ([1000, 2000], 1) if options.quick else (sorted(options.sizes), options.repeats)
    )
    load = os.getloadavg()[0]
    results = {}
    counts = {}
    for name in SETS:
        results[name], counts[name] = run_set(name, sizes, options.data, repeats)
    n = sizes[-1]
    setting = (
        f"{POINTS} test points, Gaussian kernel, float64 data; the sets are 5-d uniform (bandwidth "
        "0.5, λ = 1e-4), 8-d flights (3.6, 1e-5) and 20 clusters in 5 dimensions (1, 1e-4). Time "
        "is that of fit and variances together, the median of the repeats; each method runs in its "
        "own process, after a warm-up. Errors are relative: against dense V1 for V1, V2 and V3, "
        "against the exact posterior variance for GPR and LOVE. Steps are taken with m = 2·s_λ "
        f"rows (s_λ at n = {n:,}: "
        f"{', '.join(f'{name} {count}' for name, count in counts.items())}), V1 to a tolerance "
        f"with m = {REFINED}. Load average before the run: {load:.2f}; other work slows threaded "
        "BLAS, and so the dense methods, most. Dense V1 runs with the default BLAS threads and "
        "with one, and the faster counts."
    )
    many = (
        "A refinement step costs n² per test point, so dense wins when there are very many: the "
        "last column is the number of points from which on it is faster, by the times measured for "
        "the fit and for a point."
    )
    trade_off = f"Everything at n = {n:,}:"
    scaling = "V1 to 1e-3 against dense V1:"
    parts = [
        common.machine(),
        setting,
        trade_off,
        common.markdown_table(trade_off_rows(results, n)),
    ]
    parts += [scaling, common.markdown_table(scaling_rows(results)), many]
    common.write_csv(options.results / "accuracy_time.csv", csv_rows(results))
    figure(options.results / "accuracy_time.png", results, n)
    common.write_report(
        options.results / "accuracy_time.md",
        "Error of the variance against time",
        parts,
        claims(results),
    )


if __name__ == "__main__":
    main()
