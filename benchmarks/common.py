"""What the benchmarks share: timing, processes of their own, peak memory, tables and figures."""

from __future__ import annotations

import csv
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_info

__all__ = [
    "RESULTS",
    "ChildFailed",
    "Claim",
    "append_csv",
    "growth_exponent",
    "isolated",
    "loglog_figure",
    "machine",
    "markdown_table",
    "median",
    "resident",
    "timed",
    "with_peak_memory",
    "write_csv",
    "write_report",
]

T = TypeVar("T")
RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("sketchridge", "numpy", "scipy", "scikit-learn", "torch", "gpytorch")
_COLORS = ("#0b6e4f", "#d1495b", "#2e4057", "#8d6a9f", "#e08e45", "#4f9dc4", "#7a7a7a")
_MARKERS = "osD^vPX"


class ChildFailed(RuntimeError):
    """A subprocess ended without a result."""


@dataclass(frozen=True)
class Claim:
    """A sentence about the results that holds, does not, or (None) was not measured."""

    sentence: str
    holds: bool | None

    def __str__(self) -> str:
        return (
            f"{ {True: 'PASS', False: 'FAIL', None: 'NOT MEASURED'}[self.holds] }: {self.sentence}"
        )


def timed(function: Callable[[], object], repeats: int = 5) -> list[float]:
    """The wall time of each of ``repeats`` calls, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times


def median(times: Sequence[float]) -> float:
    return statistics.median(times)


def growth_exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The least squares slope of log t on log n; NaN for fewer than two sizes."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0]) if len(sizes) > 1 else float("nan")


def with_peak_memory(function: Callable[[], T]) -> tuple[T, float]:
    """The function's result, and by how many MiB this process grew at most while it ran.

    NaN without Linux's /proc.
    """
    if not Path("/proc/self/clear_refs").exists():
        return function(), float("nan")
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    result = function()
    return result, resident("VmHWM") - before


def isolated(
    function: Callable[..., Any], *arguments: Any, environment: Mapping[str, str] | None = None
) -> Any:
    """What ``function(*arguments)`` returns in a fresh process, by way of JSON.

    A crash, or the memory it takes, stays in that process.

    Raises
    ------
    ChildFailed
        if the process ends without a result.
    """
    with tempfile.TemporaryDirectory() as folder, _environment(environment or {}):
        path = Path(folder) / "result.json"
        process = get_context("spawn").Process(target=_child, args=(function, arguments, path))
        process.start()
        process.join()
        code = process.exitcode or 0
        if code:
            raise ChildFailed(
                f"killed by signal {-code}" if code < 0 else "an exception, printed above"
            )
        return json.loads(path.read_text())


def machine() -> str:
    """One line: processor, cores, BLAS and versions."""
    blas = {
        f"{pool['internal_api']} {pool.get('version')}"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    versions = [f"{name} {number}" for name in _PACKAGES if (number := _version(name))]
    return (
        f"{_processor()}, {cpu_count()} cores; BLAS {' and '.join(sorted(blas))}; "
        f"Python {platform.python_version()}, {', '.join(versions)}"
    )


def markdown_table(rows: Sequence[Mapping[str, object]]) -> str:
    """A Markdown table of rows that share their keys."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([str(row[key]) for key in head] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def append_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Add rows to a file, which is begun where there is none: what is done is kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    begins = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        if begins:
            writer.writeheader()
        writer.writerows(rows)


def write_report(path: Path, title: str, parts: Sequence[str], claims: Sequence[Claim]) -> None:
    """Print the parts and the claims, and write them as Markdown under a title."""
    block = "## Claims\n\n" + "\n".join(f"- {claim}" for claim in claims)
    text = "\n\n".join([f"# {title}", *parts, block])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    print(text)


def loglog_figure(
    path: Path,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    title: str,
    ylabel: str,
) -> None:
    """One line a method, time against n on logarithmic axes, each named at its right end."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8.5, 5))
    sizes = sorted({n for ns, _ in series.values() for n in ns})
    times = [t for _, ts in series.values() for t in ts]
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="training rows n",
        ylabel=ylabel,
        ylim=(min(times) / 1.6, max(times) * 1.6),
    )
    heights = _spread([ts[-1] for _, ts in series.values()], *ax.get_ylim())
    edge = sizes[-1] * (sizes[-1] / sizes[0]) ** 0.06
    for i, ((name, (ns, ts)), height) in enumerate(zip(series.items(), heights, strict=True)):
        color = _COLORS[i % len(_COLORS)]
        ax.plot(
            ns,
            ts,
            color=color,
            marker=_MARKERS[i % len(_MARKERS)],
            markersize=5,
            linewidth=2.8 if i == 0 else 1.6,
            zorder=3,
        )
        ax.plot(
            [ns[-1], edge],
            [ts[-1], height],
            color=color,
            linewidth=0.7,
            linestyle=":",
            clip_on=False,
        )
        weight = "bold" if i == 0 else "normal"
        ax.annotate(
            name,
            (edge, height),
            (4, 0),
            textcoords="offset points",
            color=color,
            va="center",
            fontsize=9,
            weight=weight,
        )
    ax.set_xlim(sizes[0] / 1.1, edge)
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda t, _: f"{t:g}")
    ax.grid(color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, loc="left", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


def _spread(heights: Sequence[float], low: float, high: float, *, lines: int = 20) -> list[float]:
    """The heights, moved apart on a logarithmic axis until labels 1/lines high do not overlap."""
    step = np.log(high / low) / lines
    order = np.argsort(heights)
    placed = np.log(heights)[order]
    for _ in range(200):
        for i in np.flatnonzero(np.diff(placed) < step):
            middle = (placed[i] + placed[i + 1]) / 2
            placed[i], placed[i + 1] = middle - step / 2, middle + step / 2
    result = np.empty(len(placed))
    result[order] = np.exp(placed)
    return result.tolist()


def _child(function: Callable[..., Any], arguments: tuple[Any, ...], path: Path) -> None:
    path.write_text(json.dumps(function(*arguments)))


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def resident(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _version(package: str) -> str:
    """The installed version, or an empty string."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
