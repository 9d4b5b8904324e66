"""The lower level as a family: what machine stands below at given hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm.kernels import Kernel, Linear
from bisvm.losses import Loss
from bisvm.machines import KernelMachine, LinearMachine, Machine, Sensitivity
from bisvm.machines.base import Intercept
from bisvm.machines.landmarks import landmark_machine
from bisvm.parts import Parameter
from bisvm.penalties import Penalty


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
        return isinstance(self.kernel, Linear)

    def parameters(self, X: Any, sample_weight: Any = None) -> tuple[Parameter, ...]:
        return (
            *self.penalty.parameters(
                self.C, X, sample_weight, linear=self.linear, intercept=self.intercept
            ),
            *self.kernel.parameters(X, sample_weight),
        )

    def kernel_at(self, values: Mapping[str, Any]) -> Kernel:
        return self.kernel.with_values({k: v for k, v in values.items() if k != "C"})

    def machine(
        self,
        values: Mapping[str, Any],
        X: Any,
        labels: np.ndarray,
        train: np.ndarray,
        landmarks: np.ndarray | None = None,
    ) -> Machine:
        """The machine at these hyperparameters.

        train : (n, q), relative weights
        landmarks : rows of X to which a kernel machine is restricted, or None
        """
        C = values["C"]
        weights = self.penalty.weights(C, train)
        if self.linear:
            precision, for_intercept = self.penalty.precision(C, X.shape[1])
            return LinearMachine(
                labels, weights, self.loss, self.intercept, X, precision, for_intercept
            )
        kernel = self.kernel_at(values)
        if landmarks is not None:
            return landmark_machine(
                labels, weights, self.loss, self.intercept, kernel, X, landmarks
            )
        return KernelMachine(
            labels, weights, self.loss, self.intercept, kernel, X, kernel.gram(X)
        )

    def gradient(
        self,
        values: Mapping[str, Any],
        sensitivity: Sensitivity,
        parameters: tuple[Parameter, ...],
    ) -> dict[str, np.ndarray]:
        """dH by parameter, in the optimizer's coordinates."""
        out = {"C": self.penalty.pullback(values["C"], sensitivity)}
        done = 0
        for parameter in parameters[1:]:
            assert sensitivity.kernel is not None
            out[parameter.name] = sensitivity.kernel[done : done + parameter.size]
            done += parameter.size
        return out
