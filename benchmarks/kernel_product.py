"""The tiled product k(X, X) @ S against scikit-learn's rbf_kernel by chunks of rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import common
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import gen_batches
from sklearn.utils._chunking import get_chunk_n_rows

from sketchridge.backends import NumpyTiles, Points
from sketchridge.kernels import Gaussian

BANDWIDTH = 0.5
FEATURES = 5
COLUMNS = 128
CHECKED = 200
WANTED = {"float32": 5.0, "float64": 2.5}
TILES = "sketchridge tiles"
HAND_TUNED = (1000, 2000)
HEADLINE = 16_000

Array = np.ndarray
Product = Callable[[], Array]


def chunked(X: Array, S: Array, rows: int) -> Array:
    """k(X, X) @ S, ``rows`` rows of k at a time."""
    out = np.empty_like(S)
    for batch in gen_batches(len(X), rows):
        out[batch] = rbf_kernel(X[batch], X, gamma=1 / (2 * BANDWIDTH**2)) @ S
    return out


def contenders(X: Array, S: Array, dtype: str) -> dict[str, Product]:
    """Every way to the product, by name.

    scikit-learn's own number of rows is that of pairwise_distances_chunked.
    """
    own = get_chunk_n_rows(row_bytes=8 * len(X), max_n_rows=len(X))
    kernel = Gaussian(bandwidth=BANDWIDTH).fitted(X)
    X_typed = X.astype(dtype)
    S_typed = S.astype(dtype)
    backend = NumpyTiles()
    P, others = (backend.place(kernel, kernel.coordinates(X)) for _ in range(2))
    T = backend.tall(S)

    def tiles(Q: Points) -> Array:
        return backend.matmul(P, Q, T, precision=dtype).host()

    return {
        TILES: partial(tiles, P),
        f"{TILES}, every tile made": partial(tiles, others),
        baseline_name(len(X)): partial(chunked, X_typed, S_typed, own),
        **{
            f"scikit-learn, chunks of {c:,} rows (by hand)": partial(chunked, X_typed, S_typed, c)
            for c in HAND_TUNED
        },
    }


def baseline_name(n: int) -> str:
    return (
        f"scikit-learn, its own chunks of {get_chunk_n_rows(row_bytes=8 * n, max_n_rows=n):,} rows"
    )


def interleaved(products: dict[str, Product], repeats: int) -> dict[str, list[float]]:
    """Times of every product, one after the other in each round; a first round is not counted."""
    rounds = [
        {name: common.timed(product, 1)[0] for name, product in products.items()}
        for _ in range(1 + repeats)
    ]
    return {name: [times[name] for times in rounds[1:]] for name in products}


def error(product: Product, rows: Array, reference: Array) -> float:
    """The largest difference from the reference, relative to its largest entry."""
    return float(np.abs(product()[rows] - reference).max() / np.abs(reference).max())


def measure(n: int, repeats: int, dtype: str) -> list[dict[str, object]]:
    """A row for each contender, its raw times among them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, FEATURES))
    S = rng.standard_normal((n, COLUMNS))
    rows = rng.choice(n, size=min(n, CHECKED), replace=False)
    reference = Gaussian(bandwidth=BANDWIDTH)(X[rows], X) @ S
    products = contenders(X, S, dtype)
    times = interleaved(products, repeats)
    ours = common.median(times[TILES])
    return [
        {
            "dtype": dtype,
            "product": name,
            "median_s": common.median(times[name]),
            "times_s": " ".join(f"{t:.6f}" for t in times[name]),
            "evaluations_per_s": n**2 / common.median(times[name]),
            "ratio": common.median(times[name]) / ours,
            "error": error(product, rows, reference),
        }
        for name, product in products.items()
    ]


def display(row: dict[str, object]) -> dict[str, object]:
    return {
        "dtype": row["dtype"],
        "product": row["product"],
        "time (s)": f"{row['median_s']:.3f}",
        "G evaluations/s": f"{row['evaluations_per_s'] / 1e9:.3f}",  # type: ignore[operator]
        "time / tiles": f"{row['ratio']:.2f}×",
        "error": f"{row['error']:.1e}",
    }


def claim(rows: list[dict[str, object]], n: int, dtype: str) -> common.Claim:
    ratios = {str(row["product"]): float(row["ratio"]) for row in rows if row["dtype"] == dtype}  # type: ignore[arg-type]
    ratio = ratios[baseline_name(n)]
    by_hand = min(value for name, value in ratios.items() if "by hand" in name)
    return common.Claim(
        f"{dtype}: at least {WANTED[dtype]:g} times faster than scikit-learn's chunked product at "
        f"n = {HEADLINE:,}: {ratio:.2f}× at n = {n:,} ({by_hand:.2f}× against the best chunk "
        "chosen by hand)",
        ratio >= WANTED[dtype] if n >= HEADLINE else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=HEADLINE)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="n = 2000 with 3 repeats: a trial, not a result"
    )
    parser.add_argument("--results", type=Path, default=common.RESULTS, help="folder of the table")
    options = parser.parse_args()
    n, repeats = (2000, 3) if options.quick else (options.n, options.repeats)
    rows = [row for dtype in WANTED for row in measure(n, repeats, dtype)]
    setting = (
        f"n = {n:,}, d = {FEATURES}, S with {COLUMNS} columns, Gaussian kernel with bandwidth "
        f"{BANDWIDTH}; the median of {repeats} rounds, in each of which every product is computed "
        f"once. The error is the largest on {min(n, CHECKED)} rows, relative to the largest entry, "
        "against float64 distances taken one by one."
    )
    parts = [common.machine(), setting, common.markdown_table([display(row) for row in rows])]
    common.write_csv(options.results / "kernel_product.csv", rows)
    common.write_report(
        options.results / "kernel_product.md",
        "Kernel product on the CPU",
        parts,
        [claim(rows, n, dtype) for dtype in WANTED],
    )


if __name__ == "__main__":
    main()
