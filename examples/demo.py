"""Delays of real flights with error bars, then a campaign that chooses which flights to look up.

Writes a report with pictures to demo-output/ in the current folder.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.paper.datasets import FLIGHT_NAMES, load_flights
from sketchridge.plotting import new_figure, plot_interval, plot_observed_predicted
from sketchridge.reporting import Section, page, picture, table

Array = np.ndarray
OUTPUT = Path("demo-output")
TRAIN = 20_000
TEST = 5_000
POOL = 10_000
INITIAL = 200  # labels of a campaign at the start
BATCH = 200  # labels in each round
ROUNDS = 8
SEEDS = 3
COLORS = {"weighted": "#1f5a8a", "uniform": "#c8443c"}


def ridge(random_state: int | None) -> SketchedKernelRidge:
    """The model of this demo, with every setting written out."""
    return SketchedKernelRidge(
        kernel="gaussian",
        bandwidth="median",
        alpha="gcv",
        sketch="auto",
        sketch_size="auto",
        sketch_tol=0.1,
        solver="sketch",
        noise="constant",
        noise_variance="auto",
        fit_intercept=True,
        backend="auto",
        dtype="auto",
        random_state=random_state,
    )


def flights() -> tuple[Array, Array]:
    """Flights from New York in a random order, clock times in hours, delays of at most 4 hours."""
    X, y = load_flights()
    for name in ("arrTime", "depTime"):
        column = FLIGHT_NAMES.index(name)
        X[:, column] = X[:, column] // 100 + X[:, column] % 100 / 60
    order = np.random.default_rng(0).permutation(len(y))[: TRAIN + TEST]
    return X[order], np.minimum(y[order], 240)


def rmse(y: Array, predicted: Array | float) -> float:
    """The root mean squared error, in minutes."""
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def summary(
    model: SketchedKernelRidge, X: Array, y: Array, mean: float, seconds: float
) -> list[dict[str, str]]:
    """What was fitted, and how well it does on flights it has not seen."""
    low, high = model.predict_interval(X)
    inside = np.mean((low <= y) & (y <= high))
    error = rmse(y, model.predict(X))
    dof = model.effective_dof_
    rows = {
        "flights": f"{TRAIN:,} to fit in {seconds:.1f} s, {TEST:,} to test, {X.shape[1]} features",
        "penalty λ": f"{model.lambda_:.3g}, chosen by GCV ({dof:.0f} degrees of freedom)",
        "sketch": f"{model.sketch_size_} rows, gap V2/V3 {model.gap_:.3f}",
        "certificate": str(model.certificate_),
        "test RMSE": f"{error:.2f} minutes, against {rmse(y, mean):.2f} for predicting the mean",
        "95% intervals": f"hold {inside:.1%} of the test flights",
    }
    return [{"what": name, "value": text} for name, text in rows.items()]


def campaign(
    X: Array, y: Array, X_test: Array, y_test: Array, acquisition: str, seed: int
) -> list[float]:
    """Test RMSE after each round."""
    learner = ActiveLearner(
        ridge(random_state=None),  # the learner's own seed
        X,
        batch_size=BATCH,
        acquisition=acquisition,
        score="v2",
        goal="explore",
        first="uniform",
        stop=None,
        store=None,
        random_state=seed,
    )
    ids: Any = np.random.default_rng(seed).choice(len(X), INITIAL, replace=False)
    errors = []
    for _ in range(ROUNDS + 1):
        learner.tell(ids, y[ids])
        errors.append(rmse(y_test, learner.estimator_.predict(X_test)))
        ids = learner.ask()
    return errors


def intervals_figure(
    model: SketchedKernelRidge, hour: Array, y: Array, X_test: Array, y_test: Array
) -> Any:
    """Intervals along the hour of departure, and predictions against observations."""
    figure, (left, right) = new_figure(2, size=(6, 4.4))
    # Many flights leave at the same minute and are late by the same whole minutes, of which neither
    # the penalty nor the noise can be told well: both are given.
    chosen = {"alpha": 1.0, "noise_variance": float(np.var(y))}
    by_hour = ridge(random_state=0).set_params(**chosen).fit(hour, y)
    plot_interval(by_hour, hour[:1500], y[:1500], ax=left)
    left.set(
        title="Delay by the hour of departure alone",
        xlabel="hour of departure",
        ylabel="arrival delay (minutes)",
    )
    plot_observed_predicted(model, X_test[:400], y_test[:400], ax=right)
    right.set(
        title="From all eight variables, 400 test flights",
        xlabel="predicted delay",
        ylabel="observed delay",
    )
    return figure


def campaign_figure(X: Array, y: Array, X_test: Array, y_test: Array) -> Any:
    """Test error against labels: each repetition thin, their mean thick."""
    figure, (ax,) = new_figure(size=(7, 4.2))
    labels = INITIAL + BATCH * np.arange(ROUNDS + 1)
    for acquisition, color in COLORS.items():
        runs = np.array(
            [campaign(X, y, X_test, y_test, acquisition, seed) for seed in range(SEEDS)]
        )
        mean = runs.mean(axis=0)
        name = f"{acquisition} (mean of {SEEDS})"
        ax.plot(labels, runs.T, color=color, alpha=0.3, linewidth=1)
        ax.plot(labels, mean, color=color, marker="o", linewidth=2, label=name)
        print(
            f"{acquisition:<14} test RMSE {mean[0]:.2f} with {labels[0]} labels, "
            f"{mean[-1]:.2f} with {labels[-1]:,}"
        )
    ax.set(xlabel="labels", ylabel="test RMSE (minutes)")
    ax.legend(frameon=False)
    return figure


def main() -> None:
    X, y = flights()
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    X_train = scaled[:TRAIN]
    X_test = scaled[TRAIN:]
    y_train = y[:TRAIN]
    y_test = y[TRAIN:]
    hour = X[:TRAIN, [FLIGHT_NAMES.index("depTime")]]

    start = time.perf_counter()
    model = ridge(random_state=0).fit(X_train, y_train)
    seconds = time.perf_counter() - start
    facts = summary(model, X_test, y_test, y_train.mean(), seconds)
    print("\n".join(f"{row['what']:<14} {row['value']}" for row in facts))
    fitted = intervals_figure(model, hour, y_train, X_test, y_test)
    curves = campaign_figure(X_train[:POOL], y_train[:POOL], X_test, y_test)

    sections = [
        Section("The fit", "", [table(facts)]),
        Section(
            "Error bars",
            "Shaded: for the mean and for a new flight.",
            [picture(fitted, "intervals and predictions")],
        ),
        Section(
            "Which flights to look up?",
            f"Each round {BATCH} flights of {POOL:,} are labeled: drawn by their variance, or "
            "evenly. Both start alike.",
            [picture(curves, "test error against labels")],
        ),
    ]
    lead = "Arrival delays of flights from New York in 2013, predicted with error bars."
    html = page("Late?", lead, sections, footer="Made by: make demo")
    OUTPUT.mkdir(exist_ok=True)
    fitted.savefig(OUTPUT / "intervals.png", dpi=150)
    curves.savefig(OUTPUT / "campaign.png", dpi=150)
    (OUTPUT / "report.html").write_text(html, encoding="utf-8")
    print(f"{'report':<14} {OUTPUT / 'report.html'}")


if __name__ == "__main__":
    main()
