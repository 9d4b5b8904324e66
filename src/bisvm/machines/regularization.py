"""How C enters the machine: one for all, or one for each feature or group."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from bisvm.core.parts import PENALTY, Parameter, Part, Value, natural_bounds, resolve
from bisvm.core.types import Array, ArrayLike
from bisvm.data.columns import SampleGroups
from bisvm.data.matrices import Inputs, column_variance, mean_variance
from bisvm.machines.base import Sensitivity

# Bounds of C in its natural unit: beyond them machines hardly change any more.
LOWEST, HIGHEST = 1e-4, 1e5


class _Data(NamedTuple):
    """What the natural unit of C depends on."""

    X: Inputs
    sample_weight: Array | None
    linear: bool
    intercept: str
    kernel_size: float
    sample_groups: SampleGroups | None

    @property
    def common_unit(self) -> float:
        """1 / variance of the points, for sample weights of one on average."""
        weight = mean_weight(self.sample_weight)
        if self.linear:
            return 1.0 / (mean_variance(self.X, self.sample_weight) * weight)
        return 1.0 / (self.kernel_size * weight)


class _Unit(NamedTuple):
    """Natural unit of C, what its entries belong to, and how many the error names."""

    value: Array | float
    labels: tuple[int | str, ...] | None
    # Features whose contributions add up in one C.
    n_summed: int
    # What C must be, if it has another number of values.
    expected: str


class Regularization(Part):
    """The part that owns C.

    Parameters
    ----------
    C_bounds : "scale" or pair of numbers
        Bounds of C. "scale" allows 1e-4 to 1e5 in the natural unit of C: 1 for a kernel
        with k(x, x) = 1, and 1 / variance for others, that of the features for a linear
        machine and that of the points in the kernel's space otherwise. One C of a
        linear machine may be smaller by the number of features, which add up. The unit
        is divided by the mean sample weight, to the nearest power of ten: what counts
        is C times weight.
    """

    def __init__(self, C_bounds: str | tuple[ArrayLike, ArrayLike] = "scale"):
        self.C_bounds = C_bounds

    # Names of the parameters it owns.
    names: ClassVar[tuple[str, ...]] = ("C",)
    # Whether it needs to know which group a sample belongs to.
    by_group: ClassVar[bool] = False

    def parameters(
        self,
        C: ArrayLike | str,
        X: Inputs,
        sample_weight: Array | None,
        *,
        linear: bool,
        intercept: str,
        kernel_size: float = 1.0,
        sample_groups: SampleGroups | None = None,
        machine_C: float = 1.0,
    ) -> tuple[Parameter, ...]:
        """Return the parameter C, with its start, its bounds and its natural unit.

        Parameters
        ----------
        C : "scale", number or array
            The start; "scale" is the natural unit, divided by the number of features
            that add up.
        X, sample_weight : the data
        linear : bool
            Whether the machine is trained in w.
        intercept : {"free", "penalized", "none"}
        kernel_size : float
            Variance of the points in the kernel's space.
        sample_groups : SampleGroups, optional
        machine_C : float
            C, in units of y, where that of a machine is one (`Model`).
        """
        unit, labels, n_summed, expected = self._unit(
            _Data(X, sample_weight, linear, intercept, kernel_size, sample_groups)
        )
        unit = machine_C * unit
        natural = isinstance(C, str) and C == "scale"
        n_expected = np.size(unit) if labels else 0
        if not natural and np.ndim(C) and np.size(C) != n_expected:
            raise ValueError(f"C has {np.size(C)} values, expected {expected}")
        start = unit / n_summed if natural else _numbers(C)
        value = np.broadcast_to(start, np.shape(unit))
        if not (np.all(value > 0) and np.all(np.isfinite(value))):
            raise ValueError(f"C must be positive and finite, got {C!r}.")
        if isinstance(self.C_bounds, str) and self.C_bounds == "scale":
            low = np.minimum(LOWEST * unit / n_summed, value)
            high = np.maximum(HIGHEST * unit, value)
        else:
            low, high = natural_bounds("C_bounds", self.C_bounds)
            value = np.clip(value, low, high) if natural else value
        parameter = Parameter(
            "C",
            value,
            (low, high),
            unit=unit,
            role=PENALTY,
            labels=labels,
            of_groups=self.by_group,
        )
        return (parameter,)

    def weights(
        self, C: Value, train: Array, sample_groups: SampleGroups | None = None
    ) -> Array:
        """Return W, the weights of the losses; `train` are the relative weights."""
        raise NotImplementedError

    def precision(self, C: Value, n_features: int) -> tuple[Array, float]:
        """Return rho_d of a linear machine, and rho of its penalised intercept."""
        return np.ones(n_features), 1.0

    def pullback(
        self,
        C: Value,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> Array:
        """Return dH/d log C."""
        raise NotImplementedError

    def _unit(self, data: _Data) -> _Unit:
        raise NotImplementedError


class Shared(Regularization):
    """E = 1/2 |f|^2 + C sum_i s_i loss_i: one C, as in scikit-learn."""

    def weights(
        self, C: Value, train: Array, sample_groups: SampleGroups | None = None
    ) -> Array:
        """W = C s."""
        return np.asarray(C * train)

    def pullback(
        self,
        C: Value,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> Array:
        """dH/d log C = sum_ik dH/d log W_ik."""
        return np.array([sensitivity.weights.sum()])

    def _unit(self, data: _Data) -> _Unit:
        expected = (
            "one number; for one C per feature use regularization='per_feature', for "
            "one per group of samples regularization='per_group'."
        )
        return _Unit(data.common_unit, None, _n_summed(data), expected)


class PerFeature(Regularization):
    """E = 1/2 sum_d w_d^2 / C_d + sum_i s_i loss_i: one C for every feature.

    Klatzer 2014, section 2.4, with c_d = 1 / C_d. A penalised intercept has its own C,
    the last one.
    """

    def weights(
        self, C: Value, train: Array, sample_groups: SampleGroups | None = None
    ) -> Array:
        """W = s: every C acts on the regulariser."""
        return train

    def precision(self, C: Value, n_features: int) -> tuple[Array, float]:
        """rho_d = 1 / C_d."""
        rho = 1.0 / np.asarray(C)
        return rho[:n_features], float(rho[-1])

    def pullback(
        self,
        C: Value,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> Array:
        """dH/d log C_d = -dH/d log rho_d."""
        assert sensitivity.precision is not None
        gradient = -sensitivity.precision
        if np.size(C) > len(gradient):
            return np.append(gradient, -sensitivity.intercept_precision)
        return np.asarray(gradient)

    def _unit(self, data: _Data) -> _Unit:
        if not data.linear:
            raise ValueError(
                "regularization='per_feature' is for linear machines "
                "(kernel='linear'); for one width per feature of a Gaussian kernel use "
                "kernel='ard'."
            )
        extra = ("intercept",) if data.intercept == "penalized" else ()
        of_features = 1.0 / column_variance(data.X, data.sample_weight)
        unit = np.append(of_features, np.ones(len(extra)))
        unit /= mean_weight(data.sample_weight)
        expected = f"one number or {len(unit)}: one per feature" + (
            " and one for the intercept." if extra else "."
        )
        return _Unit(unit, (*range(data.X.shape[1]), *extra), 1, expected)


class PerGroup(Regularization):
    """E = 1/2 |f|^2 + sum_i C_g(i) s_i loss_i: one C for every group of samples.

    dH/d log C_g is the sum of dH/d log W_i over the samples of group g. This is the
    model that section 1.4.3 of Stegie's draft means; its formula (1.24), with
    lambda_g = 1 / C_g, only depends on the sum of the lambdas.
    """

    by_group = True

    def weights(
        self, C: Value, train: Array, sample_groups: SampleGroups | None = None
    ) -> Array:
        """W_i = C_g(i) s_i."""
        return np.asarray(_needed(sample_groups).spread(np.asarray(C))[:, None] * train)

    def pullback(
        self,
        C: Value,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> Array:
        """dH/d log C_g = sum over the samples i of group g of dH/d log W_i."""
        return _needed(sample_groups).gathered(sensitivity.weights.sum(axis=1))

    def _unit(self, data: _Data) -> _Unit:
        names = tuple(map(str, _needed(data.sample_groups).names))
        expected = (
            f"one number or {len(names)}: one per group of samples, in the order "
            f"{', '.join(names)}."
        )
        unit = np.full(len(names), data.common_unit)
        return _Unit(unit, names, _n_summed(data), expected)


def _n_summed(data: _Data) -> int:
    """Features that one C of a linear machine regularizes together."""
    return int(data.X.shape[1]) if data.linear else 1


def mean_weight(sample_weight: ArrayLike | None) -> float:
    """Return the mean of the positive weights as a power of ten; 1 without weights.

    A whole power, so that a row of weight two is the same as the row given twice.
    """
    if sample_weight is None:
        return 1.0
    weight = np.asarray(sample_weight, dtype=float)
    return float(10.0 ** np.round(np.log10(weight[weight > 0].mean())))


def _numbers(C: ArrayLike | str) -> Array:
    try:
        return np.asarray(C, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"C must be 'scale', a number or an array, got {C!r}."
        ) from None


def _needed(sample_groups: SampleGroups | None) -> SampleGroups:
    if sample_groups is None:
        raise ValueError(
            "regularization='per_group' needs the group of every sample: "
            "fit(X, y, sample_groups=...), one label a sample."
        )
    return sample_groups


REGULARIZATIONS: dict[str, type[Regularization]] = {
    "shared": Shared,
    "per_feature": PerFeature,
    "per_group": PerGroup,
}


def get_regularization(regularization: str | Regularization) -> Regularization:
    """Return the regularization of that name, or the object itself."""
    return resolve("regularization", regularization, REGULARIZATIONS, Regularization)
