"""All that the arguments of an estimator mean, resolved once and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from bisvm.criteria import Criterion
from bisvm.criteria.priors import Prior
from bisvm.kernels import Kernel, Precomputed
from bisvm.machines.approximation import Choice
from bisvm.machines.model import Model
from bisvm.optimizers import Optimizer, Scan
from bisvm.search.data import Data
from bisvm.search.descent import DescentMethod
from bisvm.solvers import Solver

Grouping = Literal["groups", "classes"]
MultiClass = Literal["ovr", "ovo"]


@dataclass(frozen=True, eq=False)
class Settings:
    """What is searched, how, and within which limits.

    model : the machine; its kernel is the richest candidate where it is left open
    open_kernel : whether the kernel is chosen by held-out rows (kernel="auto")
    pairwise : whether X holds values of the kernel instead of features
    grouping : whose C is learned apart: those of "groups", of "classes", or nobody's
    optimizer : what moves theta
    chosen_optimizer : whether the optimizer is left to us (optimizer="auto")
    method : how an optimizer or a splitter descends, if it brings its own way
    refit : what becomes of C in the final machine, or its value
    arguments : as they were given, for messages and to tell one fit from another
    estimator : name of the estimator's class
    """

    model: Model
    criterion: Criterion
    prior: Prior | None
    solver: Solver
    optimizer: Optimizer
    cv: Any = 5
    learn: Any = "all"
    starts: Any = "auto"
    multi_class: MultiClass = "ovr"
    shared: bool = True
    class_weight: Any = None
    threshold: Any = None
    refit: float | Literal["rescaled", "same"] = "rescaled"
    approximation: Choice = "none"
    max_memory: float | None = None
    tol: float = 1e-3
    max_iter: int = 100
    time_limit: float | None = None
    n_jobs: int | None = None
    verbose: int = 0
    checkpoint: Any = None
    open_kernel: bool = False
    pairwise: bool = False
    grouping: Grouping | None = None
    chosen_optimizer: bool = False
    method: DescentMethod | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    estimator: str = ""

    def with_kernel(self, kernel: Kernel) -> Settings:
        """The same settings with a kernel that is chosen."""
        model = replace(self.model, kernel=kernel)
        return replace(self, model=model, open_kernel=False)

    def for_data(self, data: Data) -> Settings:
        """With the values of a precomputed kernel, where there is one."""
        if data.matrix is None:
            return self
        return self.with_kernel(Precomputed(data.matrix))

    def model_on(self, data: Data) -> Model:
        """The model with names of features replaced by their numbers."""
        names = data.feature_names
        return replace(self.model, kernel=self.model.kernel.bind(names))

    def optimizer_of(self, n_learned: int) -> Optimizer:
        """The optimizer for so many hyperparameters.

        Along one hyperparameter of the exact hinge H has flat stretches and kinks,
        where a descent would stay: if the optimizer is left to us, it is scanned.
        """
        kinked = not self.model.loss.twice_differentiable
        if self.chosen_optimizer and kinked and n_learned == 1:
            return Scan().within(self.tol, self.max_iter).validate()
        return self.optimizer

    def final_C(self, C: Any, data: Data) -> Any:
        """C of the machine that is trained on all rows."""
        if not isinstance(self.refit, str):
            return np.full_like(np.asarray(C, dtype=float), self.refit)[()]
        if self.refit == "rescaled" and not self.criterion.on_training:
            return self.model.penalty.rescaled(C, data.training_share)
        return C

    def final(self, values: dict[str, Any], data: Data) -> dict[str, Any]:
        """The hyperparameters of the machine that is trained on all rows."""
        return {**values, "C": self.final_C(values["C"], data)}
