"""Diabetes progression from ten measurements, with error bars: fit, summary and a picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sketchridge import SketchedKernelRidge
from sketchridge.plotting import plot_interval, plot_observed_predicted

matplotlib.use("Agg")
from matplotlib import pyplot as plt

Array = np.ndarray
OUTPUT = Path(__file__).parents[1] / "demo-output" / "diabetes.png"
BMI = 2


def fitted(X: Array, y: Array) -> Pipeline:
    return make_pipeline(StandardScaler(), SketchedKernelRidge(fit_intercept=True, random_state=0)).fit(X, y)


def summary(model: Pipeline, X: Array, y: Array, y_train: Array) -> str:
    """What was fitted, and how well it does on data it has not seen."""
    ridge = model[-1]
    low, high = ridge.predict_interval(model[:-1].transform(X))
    rows = {
        "rows": f"{len(y_train)} to fit, {len(y)} to test, {X.shape[1]} features",
        "penalty λ": f"{ridge.lambda_:.3g}, chosen by GCV ({ridge.effective_dof_:.1f} degrees of freedom)",
        "sketch": f"{ridge.sketch_size_} rows, gap V2/V3 {ridge.gap_:.3f}",
        "certificate": str(ridge.certificate_),
        "test RMSE": f"{rmse(y, model.predict(X)):.1f}, against {rmse(y, y_train.mean()):.1f} for predicting the mean",
        "95% intervals": f"hold {np.mean((low <= y) & (y <= high)):.1%} of the test points",
    }
    return "\n".join(f"{name:<14} {text}" for name, text in rows.items())


def rmse(y: Array, predicted: Array | float) -> float:
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def picture(path: Path, model: Pipeline, X_train: Array, y_train: Array, X_test: Array, y_test: Array) -> None:
    """Intervals along the body mass index, from a fit to it alone, and observations against predictions of the full fit."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
    bmi = X_train[:, [BMI]]
    plot_interval(fitted(bmi, y_train), bmi, y_train, ax=left)
    left.set(title="From body mass index alone", xlabel="body mass index (kg/m²)", ylabel="disease progression after a year")
    plot_observed_predicted(model, X_test, y_test, ax=right)
    right.set(title="From all ten measurements, test patients", xlabel="predicted progression", ylabel="observed progression")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontweight("bold")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    model = fitted(X_train, y_train)
    print(summary(model, X_test, y_test, y_train))
    picture(OUTPUT, model, X_train, y_train, X_test, y_test)
    print(f"{'picture':<14} {OUTPUT.relative_to(OUTPUT.parents[1])}")


if __name__ == "__main__":
    main()
