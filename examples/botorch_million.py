"""Bayesian optimization with BoTorch on a model of a million rows, with a picture.

    python examples/botorch_million.py [ROWS]

A million noisy measurements of a function of two variables are fitted once, with m = 200
landmarks. BoTorch then looks for the best place to measure next: its expected improvement takes
O(m²) per point, however many rows there are. It needs `pip install 'sketchridge[botorch,plot]'`.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from sketchridge import SketchedKernelRidge


def measured(X: np.ndarray) -> np.ndarray:
    """A hill at (0.85, 0.35) beside a lower one at (0.2, 0.8)."""
    high = np.exp(-((X - [0.85, 0.35]) ** 2).sum(axis=1) / 0.05)
    return high + 0.6 * np.exp(-((X - [0.2, 0.8]) ** 2).sum(axis=1) / 0.03)


def main(rows: int = 1_000_000, picture: str | None = None) -> tuple[np.ndarray, float, float]:
    """Where to measure next (2,), and the seconds of the fit and of the search."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.optim import optimize_acqf

    from sketchridge.botorch import BotorchModel

    rng = np.random.default_rng(0)
    X = rng.random((rows, 2)) * [0.75, 1.0]  # nobody has been beyond 0.75, where the best is
    y = measured(X) + 0.3 * rng.standard_normal(rows)
    start = time.perf_counter()
    model = SketchedKernelRidge(
        "matern52", bandwidth=0.4, alpha=0.1, sketch_size=200, solver="sketch", random_state=0
    ).fit(X, y)
    bridge = BotorchModel(model)
    fitted = time.perf_counter()
    best = float(model.predict(X[:: max(1, rows // 1000)]).max())
    improvement = LogExpectedImprovement(bridge, best_f=best)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    candidate, _ = optimize_acqf(improvement, bounds=bounds, q=1, num_restarts=4, raw_samples=64)
    found = candidate.numpy()[0]
    searched = time.perf_counter()
    if picture is not None:
        draw(model, improvement, X, found, picture)
    return found, fitted - start, searched - fitted


def draw(model: Any, improvement: Any, X: np.ndarray, found: np.ndarray, path: str) -> None:
    """The mean and the expected improvement over the square, some rows and the candidate."""
    import torch

    from sketchridge.plotting import new_figure

    side = np.linspace(0, 1, 80)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    with torch.no_grad():
        gain = improvement(torch.tensor(grid)[:, None]).exp().numpy()
    figure, panels = new_figure(2, size=(4.8, 4.0))
    shown = {f"mean of {len(X):,} rows": model.predict(grid), "expected improvement": gain}
    for ax, (title, values) in zip(panels, shown.items(), strict=True):
        image = ax.pcolormesh(side, side, values.reshape(80, 80), cmap="viridis")
        figure.colorbar(image, ax=ax)
        ax.scatter(*X[:: max(1, len(X) // 300)].T, s=3, color="white", alpha=0.5, linewidth=0)
        ax.scatter(*found, s=70, color="#c8443c", edgecolor="white", label="measure here next")
        ax.set(title=title, xlim=(0, 1), ylim=(0, 1))
        ax.legend(loc="upper right", fontsize="small")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    found, fit, search = main(rows, "botorch_million.png")
    print(f"{rows:,} rows: fitted in {fit:.1f} s, then a candidate in {search:.1f} s: {found}")
