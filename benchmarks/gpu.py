"""One GPU: errors, kernel evaluations per second, and whole fits.

Errors are against float64; rates are compared with unfused PyTorch and with the roofline.
``python benchmarks/gpu.py --data DIR`` on a machine with a GPU, where DIR holds the flights. Times
are wall times of calls that end with a result on the host, the best of three after a first that
compiles.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import torch
import triton
import triton.language as tl
from settings import sketched_ridge

from sketchridge import SketchedKernelRidge
from sketchridge.backends import Tall
from sketchridge.backends.philox import signs
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused
from sketchridge.kernels import Gaussian
from sketchridge.paper.datasets import load_flights
from sketchridge.sketches import CELL

PASSES = {"float16": 1, "float16x2": 2, "float32": 3, "float64": 1}
LANES = {
    "float16": 32,
    "float16x2": 32,
    "float32": 32,
    "float64": 16,
}  # 3 pieces of 8 coordinates, 6 of the squares; or 10: padded
WIDTHS = (64, 128, 256, 512)
FEATURES = 8
BANDWIDTH = 0.5
Row = dict[str, Any]


@triton.jit
def _exponentials(X, OUT, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + place)
    for _ in range(ROUNDS):
        x = tl.exp2(x) - 1.5
    tl.store(OUT + place, x)


def device_seconds(function: Callable[[], object]) -> float:
    """The median of five runs by the device's own clock, after one that compiles."""
    function()
    times = []
    for _ in range(5):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) / 1e3)
    return common.median(times)


def wall_seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """The best of some runs after a first."""
    function()
    return min(common.timed(function, repeats))


def ceilings(factors: torch.dtype, values: torch.dtype) -> tuple[float, float]:
    """Matrix products (FLOP/s) and exponentials (1/s) of these types, as this card does them.

    Random numbers with all their bits: the card is limited by power, and is faster where half of
    the bits are zero.
    """
    A, B = (torch.randn(8192, 8192, device="cuda", dtype=factors) for _ in range(2))
    products = 2 * 8192**3 / device_seconds(lambda: A @ B)
    x, out = (torch.rand(2**24, device="cuda", dtype=values) for _ in range(2))
    launch = partial(_exponentials[(2**24 // 1024,)], x, out, ROUNDS=256, BLOCK=1024, num_warps=4)
    return products, 2**24 * 256 / device_seconds(launch)


def coordinates(X: np.ndarray) -> torch.Tensor:
    """Centered and scaled points u on the card, for which k(x, z) = exp(−‖u − v‖²)."""
    U = (X - X.mean(axis=0)) / (np.sqrt(2) * BANDWIDTH)
    return torch.as_tensor(U, device="cuda")


def unfused(U: torch.Tensor, V: torch.Tensor, dtype: torch.dtype, rows: int = 4096) -> torch.Tensor:
    """k(X, X) V as one would write it: blocks of rows of k, and a product."""
    U = U.to(dtype)
    V = V.to(dtype)
    squares = (U * U).sum(dim=1)
    out = torch.empty_like(V)
    for i in range(0, len(U), rows):
        block = 2 * U[i : i + rows] @ U.T - squares
        block.sub_(squares[i : i + rows, None]).clamp_(max=0)
        out[i : i + rows] = torch.exp(block) @ V
    return out


def reference(X: np.ndarray, rows: np.ndarray, V: torch.Tensor) -> torch.Tensor:
    """Rows of k(X, X) V in float64, from distances taken one by one."""
    U = coordinates(X)
    products = []
    for i in rows:
        distances = torch.cdist(U[i : i + 1], U, compute_mode="donot_use_mm_for_euclid_dist")
        products.append(torch.exp(-(distances**2)) @ V)
    return torch.cat(products)


def rates(n: int) -> tuple[list[Row], list[common.Claim], str]:
    """Correctness first, then evaluations per second of every mode and width."""
    rng = np.random.default_rng(0)
    X = rng.random((n, FEATURES))
    kernel = Gaussian(BANDWIDTH).fitted(X)
    half = ceilings(torch.float16, torch.float32)
    double = ceilings(torch.float64, torch.float64)
    checked = rng.choice(n, 64, replace=False)
    U = coordinates(X)
    backend = TritonFused()
    P = backend.place(kernel, kernel.coordinates(X))
    rows: list[Row] = []
    for m in WIDTHS:
        S = signs(1, range(m), range(n), CELL, "cuda").T.double().contiguous()
        G = torch.randn(n, m, device="cuda", dtype=torch.float64)
        plain = {
            dtype: device_seconds(partial(unfused, U, S, dtype))
            for dtype in (torch.float32, torch.float64)
        }
        for mode, passes in PASSES.items():
            V = S if mode in ("float16", "float16x2") else G
            T = Tall(backend, (V,))
            multiply = partial(backend.matmul, P, P, T, precision=mode)
            out = multiply().whole()[checked]
            wanted = reference(X, checked, V)
            seconds = device_seconds(multiply)
            tensor, exponentials = double if mode == "float64" else half
            ceiling = min(tensor / (2 * m * passes + 2 * LANES[mode]), exponentials)
            its_plain = plain[torch.float64 if mode == "float64" else torch.float32]
            rows.append(
                {
                    "m": m,
                    "mode": mode,
                    "error": f"{float((out - wanted).norm() / wanted.norm()):.1e}",
                    "T evaluations/s": f"{n * n / seconds / 1e12:.3f}",
                    "of the roofline": f"{n * n / seconds / ceiling:.0%}",
                    "unfused PyTorch": f"{n * n / its_plain / 1e12:.3f}",
                    "times unfused": f"{its_plain / seconds:.1f}",
                    "rate": n * n / seconds,
                    "share": n * n / seconds / ceiling,
                    "gain": its_plain / seconds,
                    "ceiling": ceiling,
                }
            )
            print(rows[-1], flush=True)
    share = {
        mode: min(row["share"] for row in rows if row["mode"] == mode and row["m"] in (128, 256))
        for mode in PASSES
    }
    gain = {(row["mode"], row["m"]): row["gain"] for row in rows}
    signs_gain = min(gain[mode, m] for mode in ("float16", "float16x2") for m in WIDTHS[:3])
    others = {
        mode: f"{gain[mode, 512]:.1f} to {gain[mode, 64]:.1f}" for mode in ("float32", "float64")
    }
    claims = [
        common.Claim(
            f"{mode}: at least 70% of its roofline at m = 128 and 256: {share[mode]:.0%} at the "
            "least",
            share[mode] >= 0.7,
        )
        for mode in PASSES
    ]
    sentence = (
        f"at least 10 times unfused PyTorch at n = {n:,} with a sketch of signs, m = 64 to 256: "
        f"{signs_gain:.1f} at the least (at m = 512 {gain['float16', 512]:.1f} in float16, "
        f"{gain['float16x2', 512]:.1f} in float16x2; any matrix, m = 512 to 64: float32 "
        f"{others['float32']} and float64 {others['float64']}, against PyTorch in the same "
        "precision)"
    )
    claims.append(common.Claim(sentence, signs_gain >= 10))
    text = "Ceilings of this run: " + "; ".join(
        f"{tensor / 1e12:.3g} TFLOP/s of {factors} products, {exponentials / 1e12:.2f} T {values} "
        "exponentials/s"
        for (tensor, exponentials), factors, values in (
            (half, "float16", "float32"),
            (double, "float64", "float64"),
        )
    )
    return rows, claims, f"{text}. Unfused PyTorch is float32, and float64 beside the float64 mode."


def primitives(n: int, t: int) -> tuple[list[Row], list[common.Claim]]:
    """The other primitives, fused, against PyTorch's tiles in the same precision."""
    rng = np.random.default_rng(5)
    X = rng.random((n, FEATURES))
    X_new = X[:t].copy()
    kernel = Gaussian(BANDWIDTH).fitted(X)
    rows = []

    def compare(
        what: str,
        fused: Callable[[], torch.Tensor],
        tiles: Callable[[], torch.Tensor],
        evaluations: int,
    ) -> None:
        wanted = tiles()
        error = float((fused() - wanted).norm() / wanted.norm())
        ours = device_seconds(fused)
        theirs = device_seconds(tiles)
        rate = f"{evaluations / ours / 1e12:.3f}"
        rows.append(
            {
                "what": what,
                "apart": f"{error:.1e}",
                "T evaluations/s": rate,
                "times tiles": f"{theirs / ours:.1f}",
            }
        )
        print(rows[-1], flush=True)

    backends = (TritonFused(), TorchTiles(device="cuda"))
    U, U_new = kernel.coordinates(X), kernel.coordinates(X_new)
    placed = [(b.place(kernel, U), b.place(kernel, U_new)) for b in backends]
    for mode in ("float32", "float64"):
        for m in (128, 256):
            T, C = (torch.randn(rows_, m, device="cuda", dtype=torch.float64) for rows_ in (n, t))
            ones = torch.ones(n, 1, device="cuda", dtype=torch.float64)
            both = [
                partial(residual, b, new, points, T, C, ones, mode)
                for b, (points, new) in zip(backends, placed, strict=True)
            ]
            compare(f"residual_sqnorm, {mode}, m = {m}", *both, n * t)
    for m in (128, 1024):
        both = [
            partial(block, b, points, points.take(np.arange(m)))
            for b, (points, _) in zip(backends, placed, strict=True)
        ]
        compare(f"block, float64, {m:,} columns", *both, n * m)
    return rows, []


def residual(
    backend: Any, P: Any, Q: Any, T: Any, C: Any, ones: Any, precision: str
) -> torch.Tensor:
    T, C, ones = (Tall(backend, (A,)) for A in (T, C, ones))
    squares = backend.residual_sqnorm(P, Q, T, C, weights=ones, precision=precision)
    return torch.as_tensor(squares)


def block(backend: Any, P: Any, Q: Any) -> torch.Tensor:
    return backend.block(P, Q).whole()


def fit_and_v2(model: SketchedKernelRidge, X: Any, y: Any, X_new: Any) -> np.ndarray:
    return model.fit(X, y).variance(X_new, "v2")


def million(n: int) -> tuple[list[Row], list[common.Claim]]:
    """A dense sketch of signs on a million points, and V2 at a thousand."""
    rng = np.random.default_rng(1)
    X = rng.random((n, FEATURES))
    X_new = rng.random((1000, FEATURES))
    y = np.sin(6 * X[:, 0]) + rng.standard_normal(n)
    checked = rng.choice(n, 64, replace=False)
    rows = []
    claims = []
    for mode, wanted_error, wanted_seconds in (("float16x2", 5e-5, 2.0), ("float16", 3e-4, 1.5)):
        model = sketched_ridge(
            bandwidth=BANDWIDTH,
            alpha=n * 1e-3,
            sketch="rademacher",
            sketch_size=256,
            backend="triton",
            dtype=mode,
        )
        seconds = wall_seconds(partial(fit_and_v2, model, X, y, X_new), 2)
        sums = torch.as_tensor(model.fitted_.factor.sums.take(checked), device="cuda")
        S = signs(model.sketch_.seed, range(256), range(n), CELL, "cuda").double()
        exact = reference(X, checked, S.T)
        error = float((sums - exact).norm() / exact.norm())
        rows.append(
            {
                "what": f"n = {n:,}, {mode}",
                "seconds": f"{seconds:.2f}",
                "product error": f"{error:.1e}",
            }
        )
        claims.append(
            common.Claim(
                f"{mode}: n = {n:,}, m = 256 signs, fit and V2 at 1,000 points in {seconds:.2f} s "
                f"(at most {wanted_seconds}), product error {error:.1e} (at most "
                f"{wanted_error:.0e})",
                seconds <= wanted_seconds and error <= wanted_error,
            )
        )
        print(claims[-1], flush=True)
    return rows, claims


def flights(data: Path, landmarks: int) -> tuple[list[Row], list[common.Claim]]:
    """All flights, GCV, V2 and V3 at a thousand points; then V1 on an eighth of them."""
    X, y = load_flights(data)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(float)
    y = y.astype(float) - y.mean()
    rows_new = np.random.default_rng(2).choice(len(X), 1000, replace=False)
    rows = []
    claims = []
    found = {}

    def job(dtype: str, alpha: object = "gcv", *, with_gap: bool = False) -> tuple[np.ndarray, str]:
        model = sketched_ridge(
            alpha=alpha, sketch="landmarks", sketch_size=landmarks, backend="triton", dtype=dtype
        )
        v2 = model.fit(X, y).variance(X[rows_new], "v2")
        v3 = model.variance(X[rows_new], "v3")
        assert np.isfinite(v2).all()
        assert np.isfinite(v3).all()
        return v2, f"λ = {model.lambda_:.2e}, gap {model.gap_:.4g}" if with_gap else ""

    for alpha in ("gcv", len(X) * 1e-6):
        for dtype, wanted in (("float32", 4.0), ("float64", 12.0)):
            found[dtype], text = job(dtype, alpha, with_gap=True)
            seconds = min(common.timed(partial(job, dtype, alpha), 2))
            penalty = "GCV" if alpha == "gcv" else "λ given"
            what = f"{len(X):,} flights, {landmarks:,} landmarks, {penalty}, {dtype}"
            rows.append({"what": what, "seconds": f"{seconds:.2f}", "found": text})
            print(rows[-1], flush=True)
            if alpha == "gcv":
                sentence = (
                    f"{what}, V2 and V3 at 1,000 points: {seconds:.2f} s (at most {wanted}), {text}"
                )
                claims.append(common.Claim(sentence, seconds <= wanted))
            torch.cuda.empty_cache()
        apart = np.abs(found["float32"] / found["float64"] - 1)
        text = f"{np.median(apart):.1e}, {apart.max():.1e}"
        rows.append(
            {
                "what": "V2 in float32 against float64, median and worst",
                "seconds": "",
                "found": text,
            }
        )
    return rows, claims


def refined(data: Path, n: int, landmarks: int) -> tuple[list[Row], list[common.Claim]]:
    """V1 to a certified 5% on many flights."""
    X, y = load_flights(data)
    chosen = np.random.default_rng(3).permutation(len(X))[: n + 256]
    X = X[chosen].astype(float)
    y = y[chosen].astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = sketched_ridge(
        bandwidth=3.6,
        alpha=n * 1e-5,
        sketch="rpcholesky",
        sketch_size=landmarks,
        backend="triton",
        dtype="float64",
    )
    start = time.perf_counter()
    model.fit(X[:n], y[:n])
    fitted = time.perf_counter()
    v1, bound = model.variance(X[n:], "v1", tol=0.05, return_bound=True)
    seconds = time.perf_counter() - fitted
    known = float(np.max((1 + bound / np.sqrt(v1)) ** 2 - 1))
    v2 = model.variance(X[n:], "v2")
    claim = common.Claim(
        f"V1 at 256 points on {n:,} flights, λ = 1e-5, float64: certified to {known:.1%} in "
        f"{seconds:.1f} s after a fit of {fitted - start:.1f} s with {landmarks:,} landmarks (V2 "
        f"is {np.median(v2 / v1):.2f} times V1 in the median)",
        known <= 0.05,
    )
    print(claim, flush=True)
    return [
        {
            "what": f"V1 to 5%, n = {n:,}",
            "seconds": f"{seconds:.2f}",
            "found": f"certified to {known:.1%}",
        }
    ], [claim]


def ten_million(n: int) -> tuple[list[Row], list[common.Claim]]:
    rng = np.random.default_rng(4)
    X = rng.random((n, FEATURES))
    y = np.sin(6 * X[:, 0]) + rng.standard_normal(n)
    model = sketched_ridge(bandwidth=1.0, sketch="landmarks", sketch_size=1024, backend="triton")
    start = time.perf_counter()
    v2 = model.fit(X, y).variance(X[:1000], "v2")
    seconds = time.perf_counter() - start
    fits = bool(np.isfinite(v2).all() and (v2 > 0).all())
    claim = common.Claim(
        f"n = {n:,}, d = 8, 1,024 landmarks: GCV and V2 at 1,000 points in {seconds:.1f} s, λ = "
        f"{model.lambda_:.1e}, products in {model.dtype_}",
        fits,
    )
    print(claim, flush=True)
    return [
        {"what": f"n = {n:,}", "seconds": f"{seconds:.2f}", "found": f"λ = {model.lambda_:.1e}"}
    ], [claim]


def roofline_figure(path: Path, rows: list[Row], device: str) -> None:
    """Evaluations per second by width: what was reached, under the ceiling of each mode."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 5))
    for mode, color in zip(PASSES, ("#0b6e4f", "#d1495b", "#2e4057", "#edae49"), strict=True):
        mine = [row for row in rows if row["mode"] == mode]
        widths = [row["m"] for row in mine]
        ax.plot(
            widths,
            [row["rate"] / 1e12 for row in mine],
            "o-",
            color=color,
            label=f"{mode}, reached",
            linewidth=2,
        )
        ax.plot(
            widths,
            [row["ceiling"] / 1e12 for row in mine],
            "--",
            color=color,
            label=f"{mode}, ceiling",
            linewidth=1.2,
        )
    for mode, line in (("float32", "s-"), ("float64", "s:")):
        mine = [row for row in rows if row["mode"] == mode]
        rates_ = [row["rate"] / row["gain"] / 1e12 for row in mine]
        ax.plot(
            [row["m"] for row in mine], rates_, line, color="0.5", label=f"unfused PyTorch, {mode}"
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="columns m of the sketch",
        ylabel="10¹² kernel evaluations per second",
    )
    ax.set_xticks(list(WIDTHS), [str(m) for m in WIDTHS])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.grid(color="0.9")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    ax.set_title(f"Products k(X, X) @ S on one {device}", loc="left", fontsize=11)
    figure.savefig(path, dpi=150, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the flights")
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    parser.add_argument("--commit", default="", help="of the code that is measured, for the record")
    parser.add_argument(
        "--parts",
        nargs="*",
        default=["rates", "primitives", "million", "flights", "refined", "ten-million"],
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    claims: list[common.Claim] = []
    parts = [
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton "
        f"{triton.__version__}. Commit {options.commit}."
    ]
    jobs: dict[str, Callable[[], tuple[list[Row], list[common.Claim]]]] = {
        "primitives": lambda: primitives(2**18, 2**14),
        "million": lambda: million(2**20),
        "flights": lambda: flights(options.data, 4096),
        "refined": lambda: refined(options.data, 2**18, 4096),
        "ten-million": lambda: ten_million(10**7),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    if "rates" in options.parts:
        rows, found, text = rates(2**18)
        shown = [
            {k: v for k, v in row.items() if k not in ("rate", "share", "gain", "ceiling")}
            for row in rows
        ]
        parts += [text, common.markdown_table(shown)]
        claims += found
        common.write_csv(options.out / "gpu.csv", rows)
        roofline_figure(options.out / "gpu.png", rows, torch.cuda.get_device_name())
    for name in options.parts:
        if name in jobs:
            rows, found = jobs[name]()
            parts.append(common.markdown_table(rows))
            claims += found
            torch.cuda.empty_cache()
    common.write_report(options.out / "gpu.md", "One GPU", parts, claims)


if __name__ == "__main__":
    main()
