"""How C enters the machine: one for all, or one for each feature or group."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bisvm.core.parts import PENALTY, Parameter, Part, natural_bounds, resolve
from bisvm.data.sample_groups import SampleGroups
from bisvm.data.scaling import column_variance, mean_variance
from bisvm.machines import Sensitivity


class Penalty(Part):
    """The part that owns C.

    Parameters
    ----------
    C_bounds : "scale" or pair of numbers
        What C may be; "scale" allows 1e-4 to 1e5 in C's natural unit: 1 for a kernel
        with k(x, x) = 1, and 1 / variance for others: that of the features for a linear
        machine, that of the points in the kernel's own space otherwise. One C of a
        linear machine may be smaller by the number of features, which add up. The unit
        is divided by the mean sample weight, to the nearest power of ten: what counts
        is C times weight.
    """

    def __init__(self, C_bounds: Any = "scale"):
        self.C_bounds = C_bounds

    # Names of the parameters it owns.
    names: ClassVar[tuple[str, ...]] = ("C",)
    # Whether it needs to be told which group a sample belongs to.
    by_group: ClassVar[bool] = False

    def parameters(
        self,
        C: Any,
        X: Any,
        sample_weight: Any,
        *,
        linear: bool,
        intercept: str,
        kernel_size: float = 1.0,
        sample_groups: SampleGroups | None = None,
    ) -> tuple[Parameter, ...]:
        raise NotImplementedError

    def weights(
        self, C: Any, train: np.ndarray, sample_groups: SampleGroups | None = None
    ) -> np.ndarray:
        """W, the weight of every point's loss; `train` are the relative weights."""
        raise NotImplementedError

    def precision(self, C: Any, n_features: int) -> tuple[np.ndarray, float]:
        """rho_d of a linear machine's weights, and rho of a penalised intercept."""
        return np.ones(n_features), 1.0

    def pullback(
        self,
        C: Any,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> np.ndarray:
        """dH/d log C, from what the machine's parts are sensitive to."""
        raise NotImplementedError

    def rescaled(self, C: Any, ratio: float) -> Any:
        """C that balances a loss summed over 1 / ratio times as much weight."""
        return np.asarray(C) * ratio

    def _parameter(
        self,
        C: Any,
        unit: Any,
        labels: tuple[int | str, ...] | None = None,
        n_summed: int = 1,
    ) -> tuple[Parameter, ...]:
        """The parameter C; "scale" is its natural unit, less for features that add up.

        unit : for sample weights of one on average
        """
        natural = isinstance(C, str) and C == "scale"
        value = np.broadcast_to(
            unit / n_summed if natural else _numbers(C), np.shape(unit)
        )
        if not (np.all(value > 0) and np.all(np.isfinite(value))):
            raise ValueError(f"C must be positive and finite, got {C!r}.")
        if isinstance(self.C_bounds, str) and self.C_bounds == "scale":
            low = np.minimum(1e-4 * unit / n_summed, value)
            high = np.maximum(1e5 * unit, value)
        else:
            low, high = natural_bounds("C_bounds", self.C_bounds)
            value = np.clip(value, low, high) if natural else value
        return (
            Parameter(
                "C",
                value,
                (low, high),
                unit=unit,
                role=PENALTY,
                labels=labels,
                of_groups=self.by_group,
            ),
        )


class Shared(Penalty):
    """E = 1/2 |f|^2 + C sum_i s_i loss(u_i): one C, as in scikit-learn."""

    def parameters(
        self,
        C: Any,
        X: Any,
        sample_weight: Any,
        *,
        linear: bool,
        intercept: str,
        kernel_size: float = 1.0,
        sample_groups: SampleGroups | None = None,
    ) -> tuple[Parameter, ...]:
        if np.ndim(C):
            raise ValueError(
                f"C has {np.size(C)} values, expected one number; for one C per "
                "feature use penalty='per_feature', for one per group of samples "
                "penalty='per_group'."
            )
        size = mean_variance(X, sample_weight) if linear else kernel_size
        unit = 1.0 / (size * mean_weight(sample_weight))
        return self._parameter(C, unit, n_summed=X.shape[1] if linear else 1)

    def weights(
        self, C: Any, train: np.ndarray, sample_groups: SampleGroups | None = None
    ) -> np.ndarray:
        return C * train

    def pullback(
        self,
        C: Any,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> np.ndarray:
        return np.array([sensitivity.weights.sum()])


class PerFeature(Penalty):
    """E = 1/2 sum_d w_d^2 / C_d + sum_i s_i loss(u_i): one C for every feature.

    Seed 000, section 2.4, with c_d = 1 / C_d. A penalised intercept has a C of its own,
    the last one.
    """

    def parameters(
        self,
        C: Any,
        X: Any,
        sample_weight: Any,
        *,
        linear: bool,
        intercept: str,
        kernel_size: float = 1.0,
        sample_groups: SampleGroups | None = None,
    ) -> tuple[Parameter, ...]:
        if not linear:
            raise ValueError(
                "penalty='per_feature' is for linear machines (kernel='linear'); "
                "for one width per feature of a Gaussian kernel use kernel='ard'."
            )
        unit = 1.0 / column_variance(X, sample_weight)
        extra = ("intercept",) if intercept == "penalized" else ()
        unit = np.append(unit, np.ones(len(extra))) / mean_weight(sample_weight)
        if np.ndim(C) and np.size(C) != len(unit):
            raise ValueError(
                f"C has {np.size(C)} values, expected one number or {len(unit)}: one "
                "per feature" + (" and one for the intercept." if extra else ".")
            )
        labels = (*range(X.shape[1]), *extra)
        return self._parameter(C, unit, labels)

    def weights(
        self, C: Any, train: np.ndarray, sample_groups: SampleGroups | None = None
    ) -> np.ndarray:
        return train

    def precision(self, C: Any, n_features: int) -> tuple[np.ndarray, float]:
        rho = 1.0 / np.asarray(C)
        return rho[:n_features], float(rho[-1])

    def pullback(
        self,
        C: Any,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> np.ndarray:
        assert sensitivity.precision is not None
        gradient = -sensitivity.precision
        if len(C) > len(gradient):
            return np.append(gradient, -sensitivity.intercept_precision)
        return gradient


class PerGroup(Penalty):
    """E = 1/2 |f|^2 + sum_i C_g(i) s_i loss(u_i): one C for every group of samples.

    dH/d log C_g is the sum of dH/d log W_i over the samples of group g. The model that
    seed 003 means in section 1.4.3; its formula (1.24) depends on a sum only.
    """

    by_group = True

    def parameters(
        self,
        C: Any,
        X: Any,
        sample_weight: Any,
        *,
        linear: bool,
        intercept: str,
        kernel_size: float = 1.0,
        sample_groups: SampleGroups | None = None,
    ) -> tuple[Parameter, ...]:
        names = _needed(sample_groups).names
        if np.ndim(C) and np.size(C) != len(names):
            raise ValueError(
                f"C has {np.size(C)} values, expected one number or {len(names)}: one "
                f"per group of samples, in the order {', '.join(map(str, names))}."
            )
        size = mean_variance(X, sample_weight) if linear else kernel_size
        unit = np.full(len(names), 1.0 / (size * mean_weight(sample_weight)))
        labels = tuple(str(name) for name in names)
        return self._parameter(C, unit, labels, n_summed=X.shape[1] if linear else 1)

    def weights(
        self, C: Any, train: np.ndarray, sample_groups: SampleGroups | None = None
    ) -> np.ndarray:
        return _needed(sample_groups).spread(C)[:, None] * train

    def pullback(
        self,
        C: Any,
        sensitivity: Sensitivity,
        sample_groups: SampleGroups | None = None,
    ) -> np.ndarray:
        return _needed(sample_groups).gathered(sensitivity.weights.sum(axis=1))


def mean_weight(sample_weight: Any) -> float:
    """Mean weight of the samples that have one, as a power of ten; 1 without weights.

    A whole power, so that a row of weight two is the same as the row given twice.
    """
    if sample_weight is None:
        return 1.0
    weight = np.asarray(sample_weight, dtype=float)
    return float(10.0 ** np.round(np.log10(weight[weight > 0].mean())))


def _numbers(C: Any) -> np.ndarray:
    try:
        return np.asarray(C, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"C must be 'scale', a number or an array, got {C!r}."
        ) from None


def _needed(sample_groups: SampleGroups | None) -> SampleGroups:
    if sample_groups is None:
        raise ValueError(
            "penalty='per_group' has one C per group of samples and has to know them: "
            "fit(X, y, sample_groups=...), one label a sample."
        )
    return sample_groups


PENALTIES: dict[str, Any] = {
    "shared": Shared,
    "per_feature": PerFeature,
    "per_group": PerGroup,
}


def get_penalty(penalty: Any) -> Penalty:
    """The penalty of that name, or the penalty object itself."""
    return resolve("penalty", penalty, PENALTIES, Penalty)
