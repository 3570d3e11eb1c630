"""Kernel products with PyTorch, on the CPU or on a GPU: the loop of the NumPy backend over tiles that fill the device."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import array_api_compat.torch
import numpy as np
import torch

from sketchridge.backends.base import Array, Backend, Product
from sketchridge.backends.philox import signs
from sketchridge.kernels import Kernel

__all__ = ["TorchTiles", "lifted"]

_TILE_BYTES = {"cpu": 2**21, "cuda": 2**29}  # of a tile of k(X, Z)
_PIECE_BYTES = 2**31  # of a piece of an array as long as the data, while it is converted or multiplied
_placed: dict[tuple[int, int, str], tuple[Any, Any, Array]] = {}  # coordinates on a device, by kernel and points


class TorchTiles(Backend):
    """Products by matrix multiplications and elementwise functions of PyTorch.

    Parameters
    ----------
    dtype : precision of tiles and products.
    device : "cuda", "cpu" or any other name PyTorch knows; the GPU, if PyTorch sees one, unless given.
    """

    name = "torch"
    xp = array_api_compat.torch
    entries = 2**28
    precisions: tuple[str, ...] = ("float32", "float64")

    def __init__(self, dtype: str = "float64", *, device: str | None = None) -> None:
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise RuntimeError(
                f"A GPU was asked for (device {device!r}), but PyTorch {torch.__version__} sees none: use backend='numpy', "
                "or install a build of PyTorch for your GPU and its driver."
            )
        if dtype not in self.precisions:
            raise ValueError(
                f"Unknown dtype {dtype!r} for {type(self).__name__}: give one of {', '.join(map(repr, self.precisions))}."
            )
        dtype = "float64" if dtype == "float64" else "float32"
        self.precision, self.dtype = dtype, np.dtype(dtype)
        self.eps, self.far = float(np.finfo(dtype).eps), 1e-24 if self.dtype == np.float32 else 0.0
        self.device = torch.device(device)
        self._type = getattr(torch, dtype)

    def __reduce__(self) -> Any:
        return partial(type(self), self.precision, device=str(self.device)), ()

    def asarray(self, A: Any) -> Array:
        if not isinstance(A, torch.Tensor):
            A = torch.from_numpy(np.array(A, dtype=float))
        return A.to(self.device, torch.float64)

    def to_numpy(self, A: Array) -> np.ndarray:
        return A.cpu().numpy()

    def zeros(self, *shape: int) -> Array:
        return self._empty(*shape).zero_()

    def _empty(self, *shape: int) -> Array:
        self._check_memory(8 * int(np.prod(shape)), f"An array of {' × '.join(map(str, shape))} numbers")
        return torch.empty(shape, dtype=torch.float64, device=self.device)

    def spread(self, kernel: Kernel, X: np.ndarray) -> float:
        return float(_squares(self._coordinates(kernel, X)).max())

    def signs(self, seed: int, rows: range, columns: range, cell: tuple[int, int]) -> Array:
        self._check_memory(16 * len(rows) * len(columns), f"A sketch of {len(rows)} × {len(columns)} signs")
        return signs(seed, rows, columns, cell, self.device)

    def solve_triangular(self, L: Array, B: Array) -> Array:
        return torch.linalg.solve_triangular(L, B, upper=False)

    def factor_definite(self, A: Array) -> Array:
        return torch.linalg.cholesky(A)

    def solve_definite(self, factor: Array, B: Array) -> Array:
        return torch.cholesky_solve(B, factor)

    def matmul(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, V: Array) -> Array:
        if isinstance(V, Product):
            return self.matmul(kernel, X, Z, V.F) @ V.V
        V = self._native(V)
        out = self.zeros(len(X), V.shape[1])
        for cols in self._pieces(V) if V.shape[1] else ():
            self._add_products(out, kernel, X, Z, cols, V[cols])
        return out

    def _add_products(self, out: Array, kernel: Kernel, X: np.ndarray, Z: np.ndarray, cols: slice, V: Array) -> None:
        V = V.to(self._type)
        for rows, part, tile in self._tiles(kernel, X, Z, cols, self._type):
            out[rows] += tile @ V[part]

    def residual_sqnorm(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, H: Array, C: Array) -> Array:
        H, C, out, beside = self._native(H), self._native(C), self.zeros(len(X)), None
        if isinstance(H, Product):  # C (F V)ᵀ = (C Vᵀ) Fᵀ
            q = H.V.shape[1]
            H, C, beside = H.F, torch.cat([C[:, :q] @ H.V.T, C[:, q:]], dim=1), H.beside
        for cols in self._pieces(H):
            piece = H[cols] if beside is None else torch.cat([H[cols], beside[cols, None]], dim=1)
            self._add_squares(out, kernel, X, Z, cols, piece, C)
        return out

    def _add_squares(self, out: Array, kernel: Kernel, X: np.ndarray, Z: np.ndarray, cols: slice, H: Array, C: Array) -> None:
        H, C = H.to(self._type), C.to(self._type)
        for rows, part, tile in self._tiles(kernel, X, Z, cols, self._type):
            if H.shape[1]:
                tile.addmm_(C[rows], H[part].T, alpha=-1)
            out[rows] += torch.einsum("ij,ij->i", tile, tile)

    def block(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> Array:
        out = self.zeros(len(X), len(Z))
        for rows, cols, tile in self._tiles(kernel, X, Z, slice(0, len(Z)), torch.float64):
            out[rows, cols] = tile
        return out

    def schur(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, F: Array, F_Z: Array, L: Array) -> Array:
        F, F_Z, L = self._native(F), self._native(F_Z), self._native(L)
        out = self.block(kernel, X, Z)
        if not len(L):
            return out
        inverse = self.solve_triangular(L, torch.eye(len(L), dtype=L.dtype, device=self.device)).T
        for rows in self._pieces(out):
            if F.shape[1]:
                out[rows].addmm_(F[rows], F_Z.T, alpha=-1)
            solved = out[rows] @ inverse
            out[rows].addmm_(solved, L.T, alpha=-1)  # what an inverse leaves, solved for once more
            out[rows] = solved.addmm_(out[rows], inverse)
        return out

    def gram(self, F: Array, G: Array | None = None) -> Array:
        """Without G a symmetric matrix: blocks of columns from the diagonal on, at little more than half the price."""
        if isinstance(F, Product):
            return F.V.T @ (self.gram(F.F) @ F.V if G is None else self.gram(F.F, G))
        F, G = self._native(F), None if G is None else self._native(G)
        out = self.zeros(F.shape[1], F.shape[1] if G is None else G.shape[1])
        step = -(-F.shape[1] // 8) or 1
        for rows in self._pieces(F):
            left = F[rows].T
            if G is not None:
                out += left @ G[rows]
                continue
            for i in range(0, len(left), step):
                out[i : i + step, i:] += left[i : i + step] @ left[i:].T
        if G is None:
            for i in range(0, len(out), step):
                out[i + step :, i : i + step] = out[i : i + step, i + step :].T
        return out

    def product(self, F: Array, V: Array) -> Array:
        if isinstance(F, Product):
            return self.product(F.F, F.V @ V)
        F, V = self._native(F), self._native(V)
        out = self.zeros(len(F), V.shape[1])
        for rows in self._pieces(F):
            torch.matmul(F[rows], V, out=out[rows])
        return out

    def tall(self, F: Array, V: Array) -> Any:
        size = 8 * len(F) * V.shape[1]
        return Product(F, V) if size > _PIECE_BYTES and size > self._free() / 2 else self.product(F, V)

    def beside(self, H: Array, column: Array) -> Any:
        return Product(H.F, H.V, column) if isinstance(H, Product) else super().beside(H, column)

    def leverages(self, H: Array, D: Array) -> Array:
        H, D, out = self._native(H), self._native(D), self.zeros(len(H), D.shape[1])
        for rows in self._pieces(H):
            out[rows] = H[rows] ** 2 @ D
        return out

    def _native(self, A: Array) -> Any:
        return A if isinstance(A, Product) else self.asarray(A)

    def _pieces(self, A: Any) -> Iterator[slice]:
        """Slices of rows of an array as long as the data."""
        size = max(1, _PIECE_BYTES // (8 * max(A.shape[1], 1)))
        for i in range(0, len(A), size):
            yield slice(i, min(i + size, len(A)))

    def _tiles(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray, cols: slice, dtype: Any) -> Iterator[tuple[slice, slice, Array]]:
        """k(X[rows], Z[cols][part]) for all rows, with the rows and the part of the columns it stands for."""
        left, right = self._coordinates(kernel, X), self._coordinates(kernel, Z)[cols]
        if kernel.geometry == "distance":
            left, right = lifted(left, right)
        if kernel.geometry != "opaque":
            left, right = left.to(dtype), right.to(dtype)
        side = int(np.sqrt(_TILE_BYTES["cpu" if kernel.geometry == "opaque" else self.device.type] / dtype.itemsize))
        width = max(1, min(len(right), side))
        height = max(1, side * side // width)
        for i in range(0, len(X), height):
            rows = slice(i, min(i + height, len(X)))
            for j in range(0, len(right), width):
                part = slice(j, min(j + width, len(right)))
                yield rows, part, self._tile(kernel, left[rows], right[part]).to(dtype)

    def _tile(self, kernel: Kernel, u: Array, v: Array) -> Array:
        if kernel.geometry == "opaque":
            return self.asarray(kernel.block(u.cpu().numpy(), v.cpu().numpy()))
        s = u @ v.T
        if kernel.geometry == "distance":
            s.clamp_(max=0)
        kernel.profile(s, torch)
        return s

    def _coordinates(self, kernel: Kernel, X: np.ndarray) -> Array:
        """The points in the kernel's coordinates, on the device; they are sent there once, as long as X and the kernel live."""
        key = (id(kernel), id(X), str(self.device))
        found = _placed.get(key)
        if found is not None and found[0]() is kernel and found[1]() is X:
            return found[2]
        self._check_memory(8 * np.size(X), f"A set of {len(X):,} points")
        U = self.asarray(np.ascontiguousarray(kernel.coordinates(np.asarray(X, dtype=float))))
        forget = lambda _: _placed.pop(key, None)  # noqa: E731
        _placed[key] = (weakref.ref(kernel, forget), weakref.ref(X, forget), U)
        return U

    def _free(self) -> float:
        """Bytes of the device's memory that are free; those of the host are not counted."""
        if self.device.type != "cuda":
            return np.inf
        cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return torch.cuda.mem_get_info(self.device)[0] + cached

    def _check_memory(self, needed: int, what: str) -> None:
        if needed > _PIECE_BYTES and needed > self._free():
            raise MemoryError(
                f"{what} needs {needed:,} bytes of the GPU's memory, but {int(self._free()):,} are free: give a smaller "
                "sketch_size, fewer rows, or backend='numpy'."
            )


def lifted(U: Array, W: Array) -> tuple[Array, Array]:
    """Rows whose products are −‖u − w‖² = (2u, −‖u‖², 1)·(w, 1, −‖w‖²)."""
    left = torch.cat([2 * U, -_squares(U), torch.ones_like(U[:, :1])], dim=1)
    return left, torch.cat([W, torch.ones_like(W[:, :1]), -_squares(W)], dim=1)


def _squares(U: Array) -> Array:
    return (U * U).sum(dim=1, keepdim=True)
