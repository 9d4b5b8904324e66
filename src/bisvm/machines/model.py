"""The lower level as a family: what machine stands below at given hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bisvm.core.parts import Parameter
from bisvm.data.pieces import each, is_sparse
from bisvm.data.sample_groups import SampleGroups
from bisvm.data.scaling import column_moments, positive
from bisvm.kernels import Kernel, Linear
from bisvm.losses import Loss
from bisvm.machines import (
    Coefficients,
    KernelMachine,
    LinearMachine,
    Machine,
    Sensitivity,
)
from bisvm.machines.base import Intercept
from bisvm.machines.landmarks import landmark_machine
from bisvm.machines.penalties import Penalty

# Rows that settle the size of a kernel.
SIZE_ROWS = 200


@dataclass(frozen=True)
class Frame:
    """Coordinates z = (x - origin) / scale in which a linear machine is trained.

    The same machine, wherever the data lie and in whatever units: w'x + b with penalty
    rho_d w_d^2 is v'z + b' with v_d = scale_d w_d and penalty rho_d / scale_d^2 v_d^2.
    """

    origin: np.ndarray
    scale: np.ndarray

    def inside(self, X: Any) -> Any:
        return each(self._inside, X)

    def _inside(self, X: Any) -> Any:
        if sparse.issparse(X):
            scaled = X.data / self.scale[X.indices]
            return sparse.csr_array((scaled, X.indices, X.indptr), shape=X.shape)
        Z = X - self.origin
        Z /= self.scale
        return Z

    def outside(self, x: Coefficients) -> Coefficients:
        """Coefficients of the inputs as they were given."""
        coef = x.coef / self.scale[:, None]
        return Coefficients(coef, x.intercept - self.origin @ coef)


@dataclass(frozen=True)
class Model:
    """Kernel, penalty, loss and intercept: everything below but data and theta.

    A linear kernel is trained as a linear machine, in w.
    """

    kernel: Kernel
    penalty: Penalty
    C: Any
    loss: Loss
    intercept: Intercept

    @property
    def linear(self) -> bool:
        """Whether the machine is trained in w."""
        return isinstance(self.kernel, Linear)

    def parameters(
        self,
        X: Any,
        sample_weight: Any = None,
        sample_groups: SampleGroups | None = None,
    ) -> tuple[Parameter, ...]:
        of_kernel = self.kernel.parameters(X, sample_weight)
        settled = self.kernel.with_values({p.name: p.value for p in of_kernel})
        of_penalty = self.penalty.parameters(
            self.C,
            X,
            sample_weight,
            linear=self.linear,
            intercept=self.intercept,
            kernel_size=1.0 if self.linear else kernel_size(settled, X),
            sample_groups=sample_groups,
        )
        return (*of_penalty, *of_kernel)

    def frame(self, X: Any, sample_weight: Any = None) -> Frame | None:
        """Where a linear machine is trained; None for a kernel.

        Only a free intercept takes up a shift of the origin; a sparse matrix would be
        filled by it.
        """
        if not self.linear:
            return None
        moments = column_moments(X, sample_weight)
        centred = self.intercept == "free" and not is_sparse(X)
        origin = moments.mean if centred else np.zeros(X.shape[1])
        return Frame(origin, np.sqrt(positive(moments.variance)))

    def kernel_at(self, values: Mapping[str, Any]) -> Kernel:
        own = {k: v for k, v in values.items() if k not in self.penalty.names}
        return self.kernel.with_values(own)

    def machine(
        self,
        values: Mapping[str, Any],
        X: Any,
        labels: np.ndarray,
        train: np.ndarray,
        landmarks: np.ndarray | None = None,
        frame: Frame | None = None,
        sample_groups: SampleGroups | None = None,
    ) -> Machine:
        """The machine at these hyperparameters.

        X : inputs, inside the frame of a linear machine
        train : (n, q), relative weights
        landmarks : rows of X to which a kernel machine is restricted, or None
        sample_groups : of the rows, where the penalty asks for them
        """
        C = values["C"]
        weights = self.penalty.weights(C, train, sample_groups)
        if self.linear:
            precision, for_intercept = self.penalty.precision(C, X.shape[1])
            if frame is not None:
                precision = precision / frame.scale**2
            return LinearMachine(
                labels, weights, self.loss, self.intercept, X, precision, for_intercept
            )
        kernel = self.kernel_at(values)
        if landmarks is not None:
            return landmark_machine(
                labels, weights, self.loss, self.intercept, kernel, X, landmarks
            )
        # Whole numbers are no coefficients, and single precision is for who asks.
        single = getattr(X, "dtype", None) == np.float32
        gram = np.asarray(kernel.gram(X), dtype=np.float32 if single else float)
        return KernelMachine(
            labels, weights, self.loss, self.intercept, kernel, X, gram
        )

    def gradient(
        self,
        values: Mapping[str, Any],
        sensitivity: Sensitivity,
        parameters: tuple[Parameter, ...],
        sample_groups: SampleGroups | None = None,
    ) -> dict[str, np.ndarray]:
        """dH by parameter, in the optimizer's coordinates."""
        out = {"C": self.penalty.pullback(values["C"], sensitivity, sample_groups)}
        done = 0
        for parameter in parameters:
            if parameter.name in self.penalty.names:
                continue
            assert sensitivity.kernel is not None
            out[parameter.name] = sensitivity.kernel[done : done + parameter.size]
            done += parameter.size
        return out


def kernel_size(kernel: Kernel, X: Any) -> float:
    """Variance of the points in the kernel's space: mean k(x, x) - mean k(x, y).

    On some of the rows; 1 for a kernel with k(x, x) = 1.
    """
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], SIZE_ROWS)).astype(int)
    diagonal = kernel.diagonal(X[rows])
    if np.all(diagonal == 1.0):
        return 1.0
    size = float(np.mean(diagonal) - np.mean(kernel.gram(X[rows])))
    return size if size > 1e-12 * np.mean(np.abs(diagonal)) else 1.0
