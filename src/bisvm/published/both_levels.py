"""Optimizers that move both levels: they see the training problems, and not only H.

A new one is a subclass of `BothLevels` with a method `search`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import OptimizeResult

from bisvm.bilevel.objective import Objective
from bisvm.bilevel.problem import Landmarks
from bisvm.core.types import Array
from bisvm.criteria import Criterion, MeanHinge
from bisvm.data.columns import FoldColumns
from bisvm.losses import Hinge, Loss
from bisvm.optimizers.base import BoundedProblem, Optimizer
from bisvm.published.program import BilevelProgram, Swaps
from bisvm.search.descent import (
    Descent,
    DescentMethod,
    Plan,
    Search,
    View,
    end_of,
    evaluate,
    evaluate_elsewhere,
    with_landmarks,
)
from bisvm.search.observer import Trace


@dataclass(frozen=True)
class Levels:
    """What an optimizer that steps on both levels is given.

    coordinates : x, theta as the search sees it
    evaluate : H at x, recorded by the observer of the search
    seed : of all draws
    swaps : exchanges between training and held-out points on the way, or None
    landmarks : to which the machines are restricted, or None
    """

    objective: Objective
    coordinates: View
    evaluate: Callable[..., float]
    seed: int = 0
    swaps: Swaps | None = None
    landmarks: Landmarks | None = None

    @property
    def loss(self) -> Loss:
        return self.objective.problem.model.loss

    def require(self, wanted: str, *given: tuple[str, bool]) -> None:
        """Raise a ValueError that names what is given and does not fit.

        The criterion has to be the mean hinge in any case.
        """
        criterion = self.objective.problem.criterion
        hinge = f"the criterion {criterion!r}", isinstance(criterion, MeanHinge)
        wrong = [name for name, fits in (*given, hinge) if not fits]
        if wrong:
            raise ValueError(f"{wanted}. Given was {', '.join(wrong)}.")

    def program(self, method: str) -> BilevelProgram:
        """Return the training problems as constraints of one nonlinear program.

        `method` names the optimizer in messages.
        """
        problem, model = self.objective.problem, self.objective.problem.model
        self.require(
            f"{method} is for kernel machines with the hinge on both levels and a "
            "free intercept: BilevelSVC(kernel=..., loss='hinge', criterion='hinge', "
            "fit_intercept=True). For others use 'bfgs' or 'variable-metric-bundle'",
            ("a linear machine", not model.linear),
            (f"the loss {model.loss!r}", isinstance(model.loss, Hinge)),
            (f"the intercept {model.intercept!r}", model.intercept == "free"),
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


class BothLevels(Optimizer):
    """Moves theta by steps on the training problems, and not by H alone."""

    resumes = False
    any_machine = False
    # Whether it lets points change places on its way (`Levels.swaps`).
    exchanges = False

    def descent_method(self, criterion: Criterion) -> DescentMethod:
        """Return how a search descends with this optimizer, whatever its criterion."""
        return descend_on_both_levels

    def search(self, levels: Levels, x0: Array) -> OptimizeResult:
        """Search from x0; the caller evaluates H at the `x` of the result.

        Parameters
        ----------
        levels : Levels
            The training problems and the criterion.
        x0 : array of shape (n,), coordinates of theta

        Returns
        -------
        result : scipy.optimize.OptimizeResult
        """
        raise NotImplementedError

    def _minimize(
        self, problem: BoundedProblem, previous: OptimizeResult | None = None
    ) -> OptimizeResult:
        raise TypeError(
            f"{type(self).__name__} cannot minimise a function of theta: it steps on "
            "the training problems themselves. Use it in an estimator, or choose an "
            "optimizer that needs H alone, such as 'lbfgs'."
        )


class _OnBothLevels:
    """Descents by `BothLevels.search`; H is evaluated where the method asks for it."""

    on_all_splits = True

    def __call__(
        self, search: Search, trace: Trace, plan: Plan
    ) -> tuple[Descent, Trace]:
        view, stage, tentative = search.view(plan), plan.stage, plan.tentative
        trace = with_landmarks(search, trace, plan.theta)

        def value(x: Array, columns: FoldColumns | None = None) -> float:
            nonlocal trace
            at = view.expand(x)
            if columns is None:
                found, trace = evaluate(search, trace, at, stage, tentative=tentative)
                return found.value
            part = search.objective.on_columns(columns, trace.warm)
            return evaluate_elsewhere(search, trace, part, at, stage).value

        landmarks = trace.warm.landmarks
        levels = Levels(search.objective, view, value, search.seed, landmarks=landmarks)
        assert isinstance(search.optimizer, BothLevels)
        result = search.optimizer.search(levels, view.reduce(plan.theta))
        return end_of(search, trace, plan, view, result)


descend_on_both_levels = _OnBothLevels()
