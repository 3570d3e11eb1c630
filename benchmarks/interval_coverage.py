"""Coverage of 95% intervals with default settings, on Friedman's function with noise.

    python benchmarks/interval_coverage.py

For each number of rows n and of features d: many training sets, 500 new observations each. Noise
has the standard deviation 1; with 4 features the function lacks its fifth term.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import common
import numpy as np
from joblib import Parallel, delayed
from settings import automatic_ridge

Array = np.ndarray
CASES = {(30, 4): 0.90, (50, 4): 0.93, (100, 4): 0.94, (50, 10): 0.93, (100, 10): 0.93}
ASKED = 500


def friedman(X: Array) -> Array:
    """10 sin(π x₁x₂) + 20(x₃ − ½)² + 10x₄, and 5x₅ where there is a fifth feature."""
    value = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    return value + 5 * X[:, 4] if X.shape[1] > 4 else value


def measured(n: int, d: int, seed: int) -> tuple[float, float, float]:
    """The share of new observations held, the error of the mean, and the median width."""
    rng = np.random.default_rng([seed, n, d])
    X, Z = rng.random((n, d)), rng.random((ASKED, d))
    y = friedman(X) + rng.standard_normal(n)
    z = friedman(Z) + rng.standard_normal(ASKED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = automatic_ridge(random_state=0).fit(X, y)
        low, high = model.predict_interval(Z)
        error = np.sqrt(np.mean((model.predict(Z) - friedman(Z)) ** 2))
    held = np.mean((low <= z) & (z <= high))
    return float(held), float(error), float(np.median(high - low))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=common.RESULTS)
    options = parser.parse_args()
    rows, claims = [], []
    for (n, d), wanted in CASES.items():
        work = Parallel(n_jobs=options.jobs)
        found = work(delayed(measured)(n, d, seed) for seed in range(options.repetitions))
        held, error, width = np.array(found).T
        rows.append(
            {
                "n": n,
                "d": d,
                "held": f"{held.mean():.1%}",
                "standard error": f"{held.std(ddof=1) / np.sqrt(len(held)):.1%}",
                "standard deviation over training sets": f"{held.std(ddof=1):.1%}",
                "RMSE of the mean": f"{error.mean():.2f}",
                "median width": f"{width.mean():.1f}",
            }
        )
        sentence = f"at least {wanted:.0%} held with n = {n}, d = {d} (found {held.mean():.1%})"
        claims.append(common.Claim(sentence, bool(held.mean() >= wanted)))
        print(claims[-1], flush=True)
    command = "python benchmarks/interval_coverage.py"
    text = f"Command: `{command}`; {options.repetitions} training sets each."
    parts = [text, common.machine(), common.markdown_table(rows)]
    common.write_report(options.out / "coverage.md", "Coverage", parts, claims)


if __name__ == "__main__":
    main()
