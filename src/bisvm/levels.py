"""What an optimizer that steps on both levels is handed of an objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bisvm.criteria import MeanHinge
from bisvm.losses import Hinge, Loss
from bisvm.machines import LinearMachine
from bisvm.objective import BilevelObjective
from bisvm.optimizers import Alternating, LinearFolds
from bisvm.program import BilevelProgram, Swaps
from bisvm.program.bilevel import Coordinates
from bisvm.solvers.dual import features


@dataclass(frozen=True)
class Levels:
    """The training problems of an objective, in the form that a method asks for.

    coordinates : x, theta as the search sees it
    evaluate : H at x, recorded by whoever watches the search
    """

    objective: BilevelObjective
    coordinates: Coordinates
    evaluate: Callable[..., float]
    seed: int = 0
    swaps: Swaps | None = None

    @property
    def loss(self) -> Loss:
        return self.objective.problem.model.loss

    def linear_folds(self, optimizer: Alternating) -> LinearFolds:
        """As plain arrays, for methods that take steps on them."""
        problem, names = self.objective.problem, self.objective.names
        model = problem.model
        _refuse(
            f"{optimizer} is for a linear machine with the hinge on both levels "
            "and one C: BilevelLinearSVC(loss='hinge', criterion='hinge', "
            "intercept='penalized' or 'none', penalty='shared', learn='C')",
            (f"the kernel {model.kernel!r}", model.linear),
            (f"the loss {model.loss!r}", isinstance(model.loss, optimizer.losses)),
            ("a free intercept", model.intercept != "free"),
            self._hinge_above(),
            (f"{len(names)} hyperparameters", names == ["C"]),
        )
        machine = model.machine(
            self.objective.space.values(np.zeros(1)),
            problem.X,
            problem.columns.labels,
            problem.columns.train,
            frame=problem.frame,
            sample_groups=problem.sample_groups,
        )
        assert isinstance(machine, LinearMachine)
        return LinearFolds(
            features(machine),
            problem.columns.labels,
            problem.columns.train,
            problem.columns.validation,
            intercept=model.intercept == "penalized",
        )

    def program(self, optimizer: Any) -> BilevelProgram:
        """As constraints of one nonlinear program."""
        problem, model = self.objective.problem, self.objective.problem.model
        _refuse(
            f"{optimizer} is for kernel machines with the hinge on both levels and a "
            "free intercept: BilevelSVC(kernel=..., loss='hinge', criterion='hinge', "
            "intercept='free'). For others use 'bfgs' or 'variable-metric-bundle'",
            ("a linear machine", not model.linear),
            (f"the loss {model.loss!r}", isinstance(model.loss, Hinge)),
            (f"intercept={model.intercept!r}", model.intercept == "free"),
            self._hinge_above(),
            ("a machine on landmarks", problem.landmarks is None),
        )
        return BilevelProgram(
            model,
            self.objective.space,
            problem.X,
            problem.columns,
            problem.solver,
            self.coordinates,
            self.objective.prior,
            problem.sample_groups,
        )

    def _hinge_above(self) -> tuple[str, bool]:
        criterion = self.objective.problem.criterion
        return f"the criterion {criterion!r}", isinstance(criterion, MeanHinge)


def _refuse(wanted: str, *given: tuple[str, bool]) -> None:
    wrong = [name for name, fits in given if not fits]
    if wrong:
        raise ValueError(f"{wanted}. Given was {', '.join(wrong)}.")
