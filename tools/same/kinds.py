"""Ways to make a case, and what is asked of the models that it fits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tools.same import library as lib
from tools.same.answers import Answer, kept_answer

# Seed of every fit whose case does not say otherwise.
SEED = 0


@dataclass(frozen=True)
class Case:
    """A name, and a function that computes its values.

    needs : packages without which the case is skipped
    """

    name: str
    run: Callable[[], Mapping[str, Any]]
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Packages that are needed and not installed."""
        return [name for name in self.needs if find_spec(name) is None]

    def answer(self) -> Answer:
        """Run the case, without warnings of searches that were cut short.

        Several threads would add numbers in another order.
        """
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            return kept_answer(self.run())


class Registry(dict[str, Case]):
    """All cases by name, with a method for each kind."""

    def add(self, name: str, run: Callable[[], Mapping[str, Any]], *needs: str) -> None:
        if name in self:
            raise ValueError(f"There are two cases {name!r}.")
        self[name] = Case(name, run, needs)

    def case(self, name: str, *needs: str) -> Callable[[Any], Any]:
        """Decorate a function that computes the values of a case."""

        def register(run: Callable[[], Mapping[str, Any]]) -> Any:
            self.add(name, run, *needs)
            return run

        return register

    def fit(
        self,
        name: str,
        data: tuple[Any, ...],
        kind: Any = lib.BilevelSVC,
        given: Mapping[str, Any] | None = None,
        needs: tuple[str, ...] = (),
        **settings: Any,
    ) -> None:
        """Fit an estimator of `kind`.

        data : X and y
        given : further arguments of `fit`
        """

        def run() -> dict[str, Any]:
            X, y = data[:2]
            model = fitted(kind, X, y, given, **settings)
            return {**learned(model), "decision": model.decision_function(X)}

        self.add(name, run, *needs)

    def svc(self, name: str, data: Any, kernel: Any = "rbf", **settings: Any) -> None:
        """Fit a kernel machine."""
        self.fit(name, data, kernel=kernel, **settings)

    def linear(self, name: str, data: Any, **settings: Any) -> None:
        """Fit a linear machine."""
        self.fit(name, data, lib.BilevelLinearSVC, **settings)

    def objective(
        self,
        name: str,
        data: tuple[Any, ...],
        kind: Any = lib.BilevelSVC,
        given: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        """Evaluate an objective and its gradient, at its start and beside it."""

        def run() -> dict[str, Any]:
            X, y = data[:2]
            estimator = lib.make(kind, **{"random_state": SEED, **settings})
            objective = lib.BilevelObjective(estimator, X, y, **(given or {}))
            start = np.asarray(objective.theta0)
            H, gradient = objective(start)
            beside, slope = objective(start + 0.1 * np.cos(np.arange(len(start))))
            return {
                "theta0": start,
                "bounds": np.asarray(objective.bounds),
                "H": H,
                "gradient": gradient,
                "H beside": beside,
                "gradient beside": slope,
            }

        self.add(name, run)


def fitted(
    kind: Any, X: Any, y: Any, given: Mapping[str, Any] | None = None, **settings: Any
) -> Any:
    """An estimator with these settings, fitted."""
    model = lib.make(kind, **{"random_state": SEED, **settings})
    return model.fit(X, y, **(given or {}))


def learned(model: Any) -> dict[str, Any]:
    """All that a fit is judged by, except decision values."""
    expected = lib.attribute(model, "expected")
    choice = lib.attribute(model, "choice")
    landmarks = _listed(lib.attribute(model, "landmarks"))
    history = lib.attribute(model, "history")
    certificates = lib.certificates(model)
    plain = ("H", "evaluations", "relevance", "threshold", "gap")
    return {
        **hyperparameters(model),
        **{name: lib.attribute(model, name) for name in plain},
        "steps": None if history is None else len(history),
        "converged": [bool(one.converged) for one in certificates],
        "at bounds": [len(one.at_bounds) for one in certificates],
        "reason": [one.reason for one in certificates],
        "expected": None if expected is None else expected.value,
        "chosen": None if choice is None else choice.name,
        "landmarks": [one.n_landmarks for one in landmarks] or None,
        "left out": [one.mean for one in landmarks] or None,
        "filters": lib.attribute(model, "filters"),
        "lambda_w": lib.attribute(model, "lambda_w"),
        "lambda_f": lib.attribute(model, "lambda_f"),
    }


def _listed(found: Any) -> list[Any]:
    """Of one search or several, those that there are."""
    several = found if isinstance(found, list) else [found]
    return [one for one in several if one is not None]


def hyperparameters(model: Any) -> dict[str, Any]:
    """Learned values, by the names of the net."""
    net_names = {new: old for old, new in lib.HYPERPARAMETERS.items()}
    found = lib.attribute(model, "hyperparameters") or {}
    return {net_names.get(name, name): value for name, value in found.items()}
