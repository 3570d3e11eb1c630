"""Delays of real flights with error bars, then a short campaign that chooses which flights to look up: a report with pictures."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from sketchridge import ActiveLearner, SketchedKernelRidge
from sketchridge.paper.datasets import FLIGHT_NAMES, load_flights
from sketchridge.plotting import new_figure, plot_interval, plot_observed_predicted
from sketchridge.reporting import Section, page, picture, table

Array = np.ndarray
OUTPUT = Path(__file__).parents[1] / "demo-output"
TRAIN, TEST, POOL = 20_000, 5_000, 10_000
INITIAL, BATCH, ROUNDS, SEEDS = 200, 200, 8, 3
DEPARTURE = FLIGHT_NAMES.index("depTime")


def flights() -> tuple[Array, Array]:
    """Flights from New York in a random order: clock times in hours, features scaled, delays capped at four hours."""
    X, y = load_flights()
    for name in ("arrTime", "depTime"):
        column = FLIGHT_NAMES.index(name)
        X[:, column] = X[:, column] // 100 + X[:, column] % 100 / 60
    order = np.random.default_rng(0).permutation(len(y))[: TRAIN + TEST]
    return X[order], np.minimum(y[order], 240)


def rmse(y: Array, predicted: Array | float) -> float:
    return float(np.sqrt(np.mean((y - predicted) ** 2)))


def summary(model: SketchedKernelRidge, X: Array, y: Array, mean: float, seconds: float) -> list[dict[str, str]]:
    """What was fitted, and how well it does on flights it has not seen."""
    low, high = model.predict_interval(X)
    rows = {
        "flights": f"{TRAIN:,} to fit in {seconds:.1f} s, {TEST:,} to test, {X.shape[1]} features",
        "penalty λ": f"{model.lambda_:.3g}, chosen by GCV ({model.effective_dof_:.0f} degrees of freedom)",
        "sketch": f"{model.sketch_size_} rows, gap V2/V3 {model.gap_:.3f}",
        "certificate": str(model.certificate_),
        "test RMSE": f"{rmse(y, model.predict(X)):.2f} minutes, against {rmse(y, mean):.2f} for predicting the mean",
        "95% intervals": f"hold {np.mean((low <= y) & (y <= high)):.1%} of the test flights",
    }
    return [{"what": name, "value": text} for name, text in rows.items()]


def campaign(X: Array, y: Array, X_test: Array, y_test: Array, acquisition: str, seed: int) -> list[float]:
    """Test RMSE after each round."""
    learner = ActiveLearner(
        SketchedKernelRidge(fit_intercept=True), X, batch_size=BATCH, acquisition=acquisition, random_state=seed
    )
    ids, errors = np.random.default_rng(seed).choice(len(X), INITIAL, replace=False), []
    for _ in range(ROUNDS + 1):
        learner.tell(ids, y[ids])
        errors.append(rmse(y_test, learner.estimator_.predict(X_test)))
        ids = learner.ask()
    return errors


def main() -> None:
    X, y = flights()
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    X_train, y_train, X_test, y_test = scaled[:TRAIN], y[:TRAIN], scaled[TRAIN:], y[TRAIN:]
    start = time.perf_counter()
    model = SketchedKernelRidge(fit_intercept=True, random_state=0).fit(X_train, y_train)
    facts = summary(model, X_test, y_test, y_train.mean(), time.perf_counter() - start)
    print("\n".join(f"{row['what']:<14} {row['value']}" for row in facts))

    fitted, (left, right) = new_figure(2, size=(6, 4.4))
    hour = X[:TRAIN, [DEPARTURE]]
    plot_interval(SketchedKernelRidge(fit_intercept=True, random_state=0).fit(hour, y_train), hour[:1500], y_train[:1500], ax=left)
    left.set(title="Delay by the hour of departure alone", xlabel="hour of departure", ylabel="arrival delay (minutes)")
    plot_observed_predicted(model, X_test[:400], y_test[:400], ax=right)
    right.set(title="From all eight variables, 400 test flights", xlabel="predicted delay", ylabel="observed delay")

    curves, (ax,) = new_figure(size=(7, 4.2))
    labels = INITIAL + BATCH * np.arange(ROUNDS + 1)
    for acquisition, colour in (("weighted", "#1f5a8a"), ("uniform", "#c8443c")):
        runs = np.array([campaign(X_train[:POOL], y_train[:POOL], X_test, y_test, acquisition, seed) for seed in range(SEEDS)])
        ax.plot(labels, runs.T, color=colour, alpha=0.3, linewidth=1)
        ax.plot(labels, runs.mean(axis=0), color=colour, marker="o", linewidth=2, label=f"{acquisition} (mean of {SEEDS})")
        first, last = runs[:, 0].mean(), runs[:, -1].mean()
        print(f"{acquisition:<14} test RMSE {first:.2f} with {labels[0]} labels, {last:.2f} with {labels[-1]:,}")
    ax.set(xlabel="labels", ylabel="test RMSE (minutes)")
    ax.legend(frameon=False)

    sections = [
        Section("The fit", "", [table(facts)]),
        Section("Error bars", "Shaded: for the mean and for a new flight.", [picture(fitted, "intervals and predictions")]),
        Section(
            "Which flights to look up?",
            f"Each round {BATCH} flights of {POOL:,} are labeled: drawn by their variance, or evenly. Both start alike.",
            [picture(curves, "test error against labels")],
        ),
    ]
    OUTPUT.mkdir(exist_ok=True)
    fitted.savefig(OUTPUT / "intervals.png", dpi=150)
    curves.savefig(OUTPUT / "campaign.png", dpi=150)
    lead = "Arrival delays of flights from New York in 2013, predicted with error bars."
    (OUTPUT / "report.html").write_text(page("Late?", lead, sections, footer="Made by: make demo"), encoding="utf-8")
    print(f"{'report':<14} {OUTPUT.name}/report.html")


if __name__ == "__main__":
    main()
