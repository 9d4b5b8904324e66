"""Cholesky factors that leave the other threads of Python running.

The routines are those of SciPy's own LAPACK. Its Python functions for them keep the
global interpreter lock while they compute; called through their addresses they do not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

from bisvm.core.types import Array

_PREFIXES = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


def _routine(name: str, n_arguments: int) -> Callable[..., None]:
    """A LAPACK routine; it takes the addresses of its arguments."""
    capsule = cython_lapack.__pyx_capi__[name]
    address = _GET_POINTER(capsule, _GET_NAME(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


# Functions of Python itself, which keep its lock; CFUNCTYPE makes those that do not.
_GET_NAME = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_GET_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_POTRF = {dtype: _routine(f"{one}potrf", 5) for dtype, one in _PREFIXES.items()}
_POTRS = {dtype: _routine(f"{one}potrs", 8) for dtype, one in _PREFIXES.items()}


def factorize(Q: Array) -> None:
    """Write the Cholesky factor of Q = L L' over its upper triangle, as L'.

    What is below the diagonal of Q is not changed.

    Parameters
    ----------
    Q : array of shape (m, m)
        Symmetric and positive definite, in C order, in single or double precision.

    Raises
    ------
    LinAlgError
        If Q is not positive definite.
    """
    _check_layout(Q)
    size, stride, info = _integers(len(Q), max(len(Q), 1), 0)
    # LAPACK reads columns: the upper triangle is the lower one for it.
    _POTRF[Q.dtype](*_addresses(b"L", size), Q.ctypes.data, *_addresses(stride, info))
    if info.value:
        raise np.linalg.LinAlgError("matrix is not positive definite")


def solve_factorized(factor: Array, rhs: Array) -> None:
    """Solve Q x = b in place, for every row b of `rhs`, given `factorize(Q)`."""
    _check_layout(factor, rhs)
    m = len(factor)
    size, count, stride, info = _integers(m, len(rhs), max(m, 1), 0)
    _POTRS[factor.dtype](
        *_addresses(b"L", size, count),
        factor.ctypes.data,
        *_addresses(stride),
        rhs.ctypes.data,
        *_addresses(stride, info),
    )


def _check_layout(*arrays: Array) -> None:
    """Refuse arrays that are not what their addresses are taken for."""
    dtypes = {array.dtype for array in arrays}
    if len(dtypes) > 1 or not all(array.flags.c_contiguous for array in arrays):
        raise ValueError("Arrays must be in C order and have the same precision.")


def _integers(*values: int) -> list[ctypes.c_int]:
    return [ctypes.c_int(value) for value in values]


def _addresses(*arguments: Any) -> tuple[Any, ...]:
    return tuple(
        one if isinstance(one, bytes) else ctypes.byref(one) for one in arguments
    )
