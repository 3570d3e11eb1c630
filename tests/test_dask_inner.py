"""Blocks on workers that PyTorch or Triton handles: on a GPU, or in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from helpers import DEVICE, tol
from local_cluster import shared_client
from test_dask import FITS, FIXED, answers, assert_agree, problem

from sketchridge import SketchedKernelRidge
from sketchridge.backends import Backend, Tall
from sketchridge.backends.dask_blocks import DaskBlocks
from sketchridge.backends.dask_tasks import on_block
from sketchridge.backends.torch_tiles import TorchTiles
from sketchridge.backends.triton_fused import TritonFused

N = 300
CASES: dict[str, dict[str, Any]] = {
    name: FITS[name] | {"sketch_size": 20} for name in ("intercept", "dense", "polynomial")
}
INNER = {"torch": TorchTiles, "triton": TritonFused}
every_inner = pytest.mark.parametrize("make", INNER.values(), ids=INNER)


def pair(inner: Any, **settings: Any) -> list[SketchedKernelRidge]:
    """The one of blocks on workers, and the one of NumPy here."""
    X, y, _ = problem(N)
    blocks = DaskBlocks(shared_client(), inner=inner, rows=128)
    given = {blocks: da.from_array(X, chunks=(70, 3)), "numpy": X}
    return [
        SketchedKernelRidge(**FIXED | settings, backend=where).fit(rows, y)
        for where, rows in given.items()
    ]


@every_inner
@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_blocks_are_handled_by_another_backend(make, settings):
    there, here = pair(make(device=DEVICE), **settings)
    assert there.backend_ == "dask"
    assert_agree(answers(there), answers(here))


@every_inner
def test_products_in_single_precision(make):
    there, here = pair(make(device=DEVICE), **CASES["dense"] | {"dtype": "float32"})
    assert there.dtype_ == here.dtype_ == "float32"
    X = problem()[2]
    for ask in ("predict", "variance"):
        found, wanted = getattr(there, ask)(X), getattr(here, ask)(X)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tol("float32") * wanted.max())


@every_inner
def test_workers_compute_with_the_inner_backend(make):
    """In their own processes, on the device that it was made for."""
    inner = make(device=DEVICE)
    task = shared_client().submit(on_block, placed, inner, ["tall", [np.eye(2)], [(0, None)], None])
    assert task.result() == (make, DEVICE)


def placed(backend: Backend, T: Tall) -> tuple[type, str]:
    """What a task computes with, and where its matrix is."""
    return type(backend), T.panels[0].device.type


def test_a_name_is_that_of_a_backend():
    """PyTorch takes the device that the worker has."""
    assert_agree(*map(answers, pair("torch", **CASES["intercept"])))
