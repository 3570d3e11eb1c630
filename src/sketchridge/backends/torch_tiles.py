"""Kernel products with PyTorch, on the CPU or on a GPU: tiles of k(P, Q) that fill the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import torch

from sketchridge.backends.points import Points
from sketchridge.backends.slices import slices
from sketchridge.backends.tall import Tall
from sketchridge.backends.torch_arrays import TorchArrays, column_units

__all__ = ["TorchTiles"]

Array = np.ndarray
_TILE_BYTES = {True: 2**21, False: 2**29}  # of a tile of k(P, Q), on the CPU and on a GPU


class TorchTiles(TorchArrays):
    """Products by matrix multiplications and elementwise functions of PyTorch.

    Parameters
    ----------
    device : "cuda", "cpu" or any other name PyTorch knows; the GPU, if PyTorch sees one, unless
        given. That there is such a device is checked when something is sent there.

    Examples
    --------
    >>> TorchTiles(device="cpu").device
    device(type='cpu')
    """

    name = "torch"
    precisions: ClassVar[tuple[str, ...]] = ("float32", "float64")
    far: ClassVar[dict[str, float]] = {"float64": 0.0, "float32": 1e-24}

    def block(self, P: Points, Q: Points) -> Tall:
        out = self.empty(len(P), len(Q))
        for rows, cols, tile in self._tiles(P, Q, slice(0, len(Q)), torch.float64):
            out[rows, cols] = tile
        return Tall(self, (out,))

    def schur(self, P: Points, Q: Points, F: Tall, F_Q: Array, L: Array) -> Tall:
        out = self.block(P, Q).whole()
        if not out.numel():
            return Tall(self, (out,))
        its_F = self.array(F_Q)
        corner = self.array(L)
        eye = torch.eye(len(L), dtype=torch.float64, device=self.device)
        inverse = torch.linalg.solve_triangular(corner, eye, upper=False).T
        for rows in self._chunks(len(out), len(Q)):
            part = out[rows]
            _subtract_product(part, F, rows, its_F)
            solved = part @ inverse
            part.addmm_(solved, corner.T, alpha=-1)  # what an inverse leaves, solved for once more
            out[rows] = solved.addmm_(part, inverse)
        return Tall(self, (out,))

    def matmul(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall | None = None, precision: str
    ) -> Tall:
        self._check_precision(precision)
        narrow, right = _factors(T, len(P))
        out = self._zeros(len(P), narrow.shape[1])
        if narrow.shape[1]:
            for cols in self._chunks(len(Q), narrow.shape[1]):
                V = _weighted(narrow, weights, cols)
                self._add_products(out, P, Q, cols, V, precision)
        return _product(Tall(self, (out,)), right)

    def residual_sqnorm(
        self, P: Points, Q: Points, T: Tall, C: Tall, *, weights: Tall, precision: str
    ) -> Array:
        self._check_precision(precision)
        narrow, right = _factors(T, len(P))
        its_C = C if right is None else C @ right.T  # C (F R)ᵀ = (C Rᵀ) Fᵀ
        out = self._zeros(len(P), 1)
        for cols in self._chunks(len(Q), narrow.shape[1]):
            w = weights.part(cols)
            self._add_squares(out, P, Q, cols, narrow.part(cols), its_C, w, precision)
        return self.host(out[:, 0])

    def moments(
        self, P: Points, Q: Points, T: Tall, *, weights: Tall, precision: str
    ) -> tuple[Array, Tall]:
        self._check_precision(precision)
        narrow, right = _factors(T, len(P))
        dtype = _tile_type(precision)
        out = self._zeros(len(P), narrow.shape[1])
        squares = self._zeros(len(P), 1)
        for cols in self._chunks(len(Q), narrow.shape[1]):
            V, units = _scaled(_weighted(narrow, weights, cols), dtype)
            w, unit = _scaled(weights.part(cols), dtype)
            for rows, part, tile in self._tiles(P, Q, cols, dtype):
                _add_product(out[rows], tile, V[part], units)
                _add_product(squares[rows], tile.square_(), w[part], unit)
        return self.host(squares[:, 0]), _product(Tall(self, (out,)), right)

    def _add_products(
        self, out: Any, P: Points, Q: Points, cols: slice, V: Any, precision: str
    ) -> None:
        """out += k(P, Q[cols]) V."""
        dtype = _tile_type(precision)
        V, units = _scaled(V, dtype)
        for rows, part, tile in self._tiles(P, Q, cols, dtype):
            _add_product(out[rows], tile, V[part], units)

    def _add_squares(
        self, out: Any, P: Points, Q: Points, cols: slice, H: Any, C: Tall, w: Any, precision: str
    ) -> None:
        """out += Σ_j w_j (k(P, Q[cols]) − C Hᵀ)_j²."""
        dtype = _tile_type(precision)
        H = H.to(dtype)
        w, unit = _scaled(w, dtype)
        for rows, part, tile in self._tiles(P, Q, cols, dtype):
            if part.start == 0:
                c = C.part(rows).to(dtype)
            if H.shape[1]:
                tile.addmm_(c, H[part].T, alpha=-1)
            _add_product(out[rows], tile.square_(), w[part], unit)

    def _check_precision(self, precision: str) -> None:
        if precision not in self.precisions:
            raise ValueError(
                f"Unknown precision {precision!r} for {type(self).__name__}: give one of "
                f"{', '.join(map(repr, self.precisions))}."
            )

    def _tiles(
        self, P: Points, Q: Points, cols: slice, dtype: torch.dtype
    ) -> Iterator[tuple[slice, slice, Any]]:
        """k(P[rows], Q[cols][part]) for all rows, with the rows and the part it stands for."""
        opaque = P.kernel.geometry == "opaque"
        n = cols.stop - cols.start
        bytes_of_a_tile = _TILE_BYTES[opaque or self._on_the_host]
        side = int(np.sqrt(bytes_of_a_tile / dtype.itemsize))
        width = max(1, min(n, side))
        height = max(1, side * side // width)
        make = self._opaque_filler if opaque else self._filler
        fill = make(P, Q, cols, dtype)
        for rows in slices(len(P), height):
            for part in slices(n, width):
                yield rows, part, fill(rows, part).to(dtype)

    def _filler(
        self, P: Points, Q: Points, cols: slice, dtype: torch.dtype
    ) -> Callable[[slice, slice], Any]:
        kernel = P.kernel
        left = self._rows(P, "left", dtype)
        right = self._rows(Q, "right", dtype)[cols]
        farthest = getattr(kernel, "reach", np.inf) if dtype == torch.float32 else np.inf
        far_P, far_Q = P.far(), Q.far()[cols]
        any_far = bool(far_P.any() and far_Q.any())

        def fill(rows: slice, part: slice) -> Any:
            s = left[rows] @ right[part].T
            if any_far:
                i, j = np.flatnonzero(far_P[rows]), np.flatnonzero(far_Q[part])
                s[np.ix_(i, j)] = _differences(P.U[rows][i], Q.U[cols][part][j]).to(dtype)
            if kernel.geometry == "distance":  # rounding can push it below 0
                s.clamp_(0, farthest)
            return kernel.evaluate(s, torch)

        return fill

    def _opaque_filler(
        self, P: Points, Q: Points, cols: slice, dtype: torch.dtype
    ) -> Callable[[slice, slice], Any]:
        V = Q.U[cols]
        return lambda rows, part: self.array(P.kernel.block(P.U[rows], V[part]))

    def _rows(self, points: Points, side: str, dtype: torch.dtype) -> Any:
        """The points as rows whose products are what the kernel is a function of."""

        def make() -> Any:
            U = points.U
            self.check_memory(8 * (U.numel() + 2 * len(U)), f"Preparing {len(U):,} points")
            lifted = _lifted(U, side) if points.kernel.geometry == "distance" else U
            return lifted.to(dtype)

        return points.kept(("tiles", side, dtype), make)


def _tile_type(precision: str) -> torch.dtype:
    return torch.float64 if precision == "float64" else torch.float32


def _scaled(V: Any, dtype: torch.dtype) -> tuple[Any, Any]:
    """(V', units) in a type with V = V' units: no column leaves the range of float32."""
    if dtype == torch.float64:
        return V, None
    units = column_units(V)
    return (V / units).to(dtype), units


def _add_product(out: Any, tile: Any, V: Any, units: Any) -> None:
    if units is None:
        out.addmm_(tile, V)
    else:
        out += (tile @ V) * units


def _factors(T: Tall, t: int) -> tuple[Tall, Any]:
    """(F, R) with T = F R, by which products with a matrix (t, n) are cheapest; R is None where F
    is T itself: (m + t) r numbers per row are multiplied to form it first, and t m otherwise."""
    if T.right is None:
        return T, None
    m, r = T.right.shape
    if (m + t) * r < t * m:
        return T, None
    return T.unmixed, T.right


def _product(F: Tall, R: Any) -> Tall:
    return F if R is None else F @ R


def _weighted(T: Tall, weights: Tall | None, rows: slice) -> Any:
    part = T.part(rows)
    return part if weights is None or weights.ones else part * weights.part(rows)


def _subtract_product(out: Any, F: Tall, rows: slice, A: Any) -> None:
    """out −= F[rows] Aᵀ, panel by panel, so that none is copied."""
    if F.right is not None:
        out.addmm_(F.part(rows), A.T, alpha=-1)
        return
    for panel, place in F.placed():
        if panel.shape[1]:
            out.addmm_(panel[rows], A[:, place].T, alpha=-1)


def _lifted(U: Any, side: str) -> Any:
    """Rows whose products are ‖u − v‖² = (−2u, ‖u‖², 1)·(v, 1, ‖v‖²)."""
    squares = (U * U).sum(dim=1, keepdim=True)
    ones = torch.ones_like(squares)
    return torch.cat([-2 * U, squares, ones] if side == "left" else [U, ones, squares], dim=1)


def _differences(U: Any, V: Any) -> Any:
    """‖u − v‖² without a product, for points far out."""
    return torch.cdist(U, V, compute_mode="donot_use_mm_for_euclid_dist") ** 2
