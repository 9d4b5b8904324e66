"""Names of types that many folders use."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

# A dense array of numbers: vectors, Gram matrices, theta.
Array: TypeAlias = np.ndarray
# Validated inputs in memory, one row for each sample.
Matrix: TypeAlias = np.ndarray | sparse.csr_array
# Inputs as users hand them in, before validation: an array, a data frame, a sparse
# matrix, `Chunks`, or a Dask collection.
UserData: TypeAlias = Any
# Vectors as users hand them in: labels, weights, groups.
UserVector: TypeAlias = ArrayLike | Any

__all__ = ["Array", "ArrayLike", "Matrix", "UserData", "UserVector"]
