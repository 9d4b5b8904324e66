"""The lower level: which machine is trained at given hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bisvm.core.parts import Parameter
from bisvm.core.types import Array, ArrayLike, Matrix
from bisvm.data.columns import SampleGroups
from bisvm.data.matrices import (
    Inputs,
    column_moments,
    dense,
    each,
    is_sparse,
    positive,
)
from bisvm.kernels import Kernel, Linear
from bisvm.losses import Loss
from bisvm.machines.base import Coefficients, Intercept, Machine, Sensitivity
from bisvm.machines.kernel import KernelMachine
from bisvm.machines.landmarks import landmark_machine
from bisvm.machines.linear import LinearMachine
from bisvm.machines.regularization import Regularization

# Rows from which the size of a kernel is computed.
SIZE_ROWS = 200


@dataclass(frozen=True)
class Frame:
    """Coordinates z = (x - origin) / scale in which a linear machine is trained.

    The machine does not depend on them: w'x + b with regulariser rho_d w_d^2 is
    v'z + b' with v_d = scale_d w_d and regulariser rho_d / scale_d^2 v_d^2.
    """

    origin: Array
    scale: Array

    def scaled(self, X: Inputs) -> Inputs:
        """Return the inputs in these coordinates."""
        inputs: Inputs = each(self._scaled, X)
        return inputs

    def _scaled(self, X: Matrix) -> Matrix:
        if isinstance(X, np.ndarray):
            Z = X - self.origin
            Z /= self.scale
            return Z
        data = X.data / self.scale[X.indices]
        return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)

    def unscaled(self, x: Coefficients) -> Coefficients:
        """Return the coefficients for inputs in their original units."""
        coef = x.coef / self.scale[:, None]
        return Coefficients(coef, x.intercept - self.origin @ coef)


@dataclass(frozen=True, eq=False)
class RowFrame:
    """A linear machine that is trained as a kernel machine: w = sum_i beta_i z_i.

    z = x - origin. With fewer rows than features there are fewer coefficients, and one
    Gram matrix of all z_i'z_j serves for every C.
    """

    X: Matrix
    origin: Array

    @classmethod
    def of(cls, X: Matrix) -> RowFrame:
        """Centre inputs that are not sparse; a free intercept makes up for it."""
        if is_sparse(X):
            return cls(X, np.zeros(X.shape[1]))
        origin = X.mean(axis=0)
        return cls(X - origin, origin)

    def gram(self) -> Array:
        """Return z_i'z_j of all rows."""
        return np.asarray(dense(self.X @ self.X.T), dtype=float)

    def unscaled(self, x: Coefficients) -> Coefficients:
        """Return the coefficients of the features, in their original units."""
        coef = np.asarray(self.X.T @ x.coef)
        return Coefficients(coef, x.intercept - self.origin @ coef)


@dataclass(frozen=True)
class Model:
    """Kernel, regularization, loss and intercept: the lower level without its data.

    A linear kernel is trained as a linear machine, in w.

    A regression is trained on y / s, with s the standard deviation of y, while its
    hyperparameters are in units of y. With a loss of degree p (`Loss.degree`)

        1/2 |f|^2 + C sum_i l(f_i, y_i)
            = s^2 (1/2 |g|^2 + C s^(p-2) sum_i l(g_i, y_i / s)),      f = s g,

    so that machines have C s^(p-2) instead of C.

    target_scale : s; 1 for class labels
    """

    kernel: Kernel
    regularization: Regularization
    C: ArrayLike | str
    loss: Loss
    intercept: Intercept
    target_scale: float = 1.0

    @property
    def C_factor(self) -> float:
        """s^(p-2), from C in units of y to that of a machine."""
        return float(self.target_scale ** (self.loss.degree - 2.0))

    @property
    def linear(self) -> bool:
        """Whether the machine is trained in w."""
        return isinstance(self.kernel, Linear)

    def parameters(
        self,
        X: Inputs,
        sample_weight: Array | None = None,
        sample_groups: SampleGroups | None = None,
    ) -> tuple[Parameter, ...]:
        """Return all hyperparameters, with starts and bounds for these data."""
        of_kernel = self.kernel.parameters(X, sample_weight)
        kernel = self.kernel.with_values({p.name: p.value for p in of_kernel})
        of_regularization = self.regularization.parameters(
            self.C,
            X,
            sample_weight,
            linear=self.linear,
            intercept=self.intercept,
            kernel_size=1.0 if self.linear else kernel_size(kernel, X),
            sample_groups=sample_groups,
            machine_C=1.0 / self.C_factor,
        )
        return (
            *of_regularization,
            *self.loss.parameters(self.target_scale),
            *of_kernel,
        )

    def frame(self, X: Inputs, sample_weight: Array | None = None) -> Frame | None:
        """Return the coordinates for a linear machine; None for a kernel.

        Only a free intercept compensates a shift of the origin, and the shift would
        fill a sparse matrix.
        """
        if not self.linear:
            return None
        moments = column_moments(X, sample_weight)
        centred = self.intercept == "free" and not is_sparse(X)
        origin = moments.mean if centred else np.zeros(X.shape[1])
        return Frame(origin, np.sqrt(positive(moments.variance)))

    def kernel_at(self, values: Mapping[str, object]) -> Kernel:
        """Return the kernel at these hyperparameters."""
        others = {*self.regularization.names, *self.loss.names}
        own = {name: value for name, value in values.items() if name not in others}
        return self.kernel.with_values(own)

    def machine(
        self,
        values: Mapping[str, object],
        X: Inputs,
        labels: Array,
        train: Array,
        landmarks: Array | None = None,
        frame: Frame | RowFrame | None = None,
        sample_groups: SampleGroups | None = None,
    ) -> Machine:
        """Return the machine at these hyperparameters.

        Parameters
        ----------
        values : mapping
            Hyperparameters by name, in natural units.
        X : matrix of shape (n, d)
            Inputs, in the coordinates `frame` for a linear machine.
        labels, train : arrays of shape (n, q)
            Labels, or targets over `target_scale`, and relative weights of every
            column.
        landmarks : array, optional
            Rows of X to which a kernel machine is restricted.
        frame : Frame or RowFrame, optional
        sample_groups : SampleGroups, optional
            Groups of the rows, for a regularization that has one C for each.
        """
        C = self.C_factor * np.asarray(values["C"], dtype=float)
        weights = self.regularization.weights(C, train, sample_groups)
        loss = self.loss.with_values(values, self.target_scale)
        if self.linear:
            precision, for_intercept = self.regularization.precision(C, X.shape[1])
            if isinstance(frame, Frame):
                precision = precision / frame.scale**2
            return LinearMachine(
                labels, weights, loss, self.intercept, X, precision, for_intercept
            )
        kernel = self.kernel_at(values)
        common = labels, weights, loss, self.intercept, kernel, X
        if landmarks is not None:
            return landmark_machine(*common, landmarks)
        # Single precision only if X has it; integers become float64.
        single = getattr(X, "dtype", None) == np.float32
        gram = np.asarray(kernel.gram(X), dtype=np.float32 if single else float)
        return KernelMachine(*common, gram)

    def gradient(
        self,
        values: Mapping[str, object],
        sensitivity: Sensitivity,
        parameters: tuple[Parameter, ...],
        sample_groups: SampleGroups | None = None,
    ) -> dict[str, Array]:
        """Return dH by parameter, in the optimizer's coordinates."""
        C = np.asarray(values["C"], dtype=float)
        out = {"C": self.regularization.pullback(C, sensitivity, sample_groups)}
        of_loss = zip(self.loss.names, sensitivity.loss, strict=True)
        out |= {name: np.array([gradient]) for name, gradient in of_loss}
        done = 0
        for parameter in parameters:
            if parameter.name in out:
                continue
            assert sensitivity.kernel is not None
            out[parameter.name] = sensitivity.kernel[done : done + parameter.size]
            done += parameter.size
        return out


def kernel_size(kernel: Kernel, X: Inputs) -> float:
    """Variance of the points in the kernel's space: mean k(x, x) - mean k(x, y).

    On some of the rows; 1 for a kernel with k(x, x) = 1, and where it is zero.
    """
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], SIZE_ROWS)).astype(int)
    diagonal = kernel.diagonal(X[rows])
    if np.all(diagonal == 1.0):
        return 1.0
    size = float(np.mean(diagonal) - np.mean(kernel.gram(X[rows])))
    return size if size > 1e-12 * np.mean(np.abs(diagonal)) else 1.0
