"""A fit on a Dask cluster: here two processes of this machine; comments say what a real one needs.

Rows stay on the workers. What comes here are sums, some rows, and answers that are asked for.
"""

from __future__ import annotations

import dask.array as da
from distributed import Client, LocalCluster

from sketchridge import SketchedKernelRidge

N = 40_000


def main() -> tuple[float, float]:
    """The root mean squared error, and the share of intervals of 95% that hold."""
    # For a real cluster give the address of its scheduler, Client("tcp://scheduler:8786"), or that
    # of dask-jobqueue, dask-kubernetes or Coiled. Nothing else changes.
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        rng = da.random.default_rng(0)
        X = rng.random((N, 4), chunks=(10_000, 4))  # or dask.dataframe.read_parquet(...)
        truth = da.sin(4 * X[:, 0]) + X[:, 1] ** 2
        y = truth + 0.1 * rng.standard_normal(N, chunks=10_000)
        model = SketchedKernelRidge(
            kernel="gaussian",
            bandwidth="median",
            alpha="gcv",
            sketch_size=400,
            solver="sketch",
            fit_intercept=True,
            random_state=0,
        )
        model.fit(X, y)  # a Dask array is fitted where it lies; backend="dask" sends NumPy's there
        print(f"backend {model.backend_}, {model.sketch_size_} landmarks, λ = {model.lambda_:.3g}")

        new = X[:2000]
        mean = model.predict(new)  # lazy, as Dask's arrays are
        low, high = model.predict_interval(new)
        error = da.sqrt(((mean - truth[:2000]) ** 2).mean())
        inside = ((low <= y[:2000]) & (y[:2000] <= high)).mean()
        found = float(error.compute()), float(inside.compute())
    print(f"error {found[0]:.3f}, intervals that hold {found[1]:.1%}")
    return found


if __name__ == "__main__":
    main()
