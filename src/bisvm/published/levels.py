"""What an optimizer that steps on both levels is handed of an objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Landmarks
from bisvm.criteria import MeanHinge
from bisvm.data.splits import Columns
from bisvm.losses import Hinge, Loss
from bisvm.machines import LinearMachine
from bisvm.published.linear_folds import LinearFolds
from bisvm.published.program import BilevelProgram, Swaps
from bisvm.published.program.bilevel import Coordinates
from bisvm.search.descent import (
    Descent,
    Search,
    Trace,
    evaluate,
    evaluate_elsewhere,
    found_at,
    with_landmarks,
)
from bisvm.solvers.dual import features


@dataclass(frozen=True)
class Levels:
    """The training problems of an objective, in the form that a method asks for.

    seed : of all draws
    swaps : exchanges between training and held-out points on the way, or None
    coordinates : x, theta as the search sees it
    evaluate : H at x, recorded by whoever watches the search
    landmarks : to which the machines are restricted, or None
    """

    objective: Objective
    coordinates: Coordinates
    evaluate: Callable[..., float]
    seed: int = 0
    swaps: Swaps | None = None
    landmarks: Landmarks | None = None

    @property
    def loss(self) -> Loss:
        return self.objective.problem.model.loss

    def linear_folds(self, method: str, losses: tuple[type[Loss], ...]) -> LinearFolds:
        """As plain arrays, for a method that takes steps on them.

        Parameters
        ----------
        method : str
            Its name, for messages.
        losses : tuple of classes
            Losses of the lower level that it can step on.
        """
        problem, names = self.objective.problem, self.objective.names
        model = problem.model
        _refuse(
            f"{method} is for a linear machine with the hinge on both levels "
            "and one C: BilevelLinearSVC(loss='hinge', criterion='hinge', "
            "intercept='penalized' or 'none', penalty='shared', learn='C')",
            (f"the kernel {model.kernel!r}", model.linear),
            (f"the loss {model.loss!r}", isinstance(model.loss, losses)),
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

    def program(self, method: str) -> BilevelProgram:
        """As constraints of one nonlinear program."""
        problem, model = self.objective.problem, self.objective.problem.model
        _refuse(
            f"{method} is for kernel machines with the hinge on both levels and a "
            "free intercept: BilevelSVC(kernel=..., loss='hinge', criterion='hinge', "
            "intercept='free'). For others use 'bfgs' or 'variable-metric-bundle'",
            ("a linear machine", not model.linear),
            (f"the loss {model.loss!r}", isinstance(model.loss, Hinge)),
            (f"intercept={model.intercept!r}", model.intercept == "free"),
            self._hinge_above(),
            ("a machine on landmarks", self.landmarks is None),
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


class _OnBothLevels:
    """Steps on both levels; H is looked at where the method asks for it."""

    on_all_splits = True

    def __call__(
        self,
        search: Search,
        trace: Trace,
        theta: np.ndarray,
        stage: str,
        previous: Any = None,
        *,
        tied: bool = False,
        groups_apart: bool = False,
        tentative: bool = False,
    ) -> tuple[Descent, Trace]:
        view = search.view(tied=tied, groups_apart=groups_apart)
        trace = with_landmarks(search, trace, theta)

        def value(x: np.ndarray, columns: Columns | None = None) -> float:
            nonlocal trace
            at = view.expand(x)
            if columns is None:
                found, trace = evaluate(search, trace, at, stage, tentative=tentative)
                return found.value
            part = search.objective.on_columns(columns, trace.warm)
            return evaluate_elsewhere(search, trace, part, at, stage).value

        landmarks = trace.warm.landmarks
        levels = Levels(search.objective, view, value, search.seed, landmarks=landmarks)
        optimizer: Any = search.optimizer
        result = optimizer.search(levels, view.reduce(theta))
        end = view.expand(result.x)
        best, trace = evaluate(search, trace, end, stage, tentative=tentative)
        slope = view.pullback(end, best.gradient)
        result = OptimizeResult({**result, "fun": best.value, "jac": slope})
        return found_at(best, view, result), trace


descend_on_both_levels = _OnBothLevels()
