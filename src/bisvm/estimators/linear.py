"""BilevelLinearSVC: a linear SVM that tunes itself."""

from __future__ import annotations

from typing import Any

from bisvm.estimators.base import BilevelClassifier
from bisvm.kernels import Kernel, Linear


class BilevelLinearSVC(BilevelClassifier):
    """doc"""

    def __init__(
        self,
        *,
        C: Any = 1.0,
        penalty: Any = "shared",
        loss: Any = "quartic",
        criterion: Any = "calibrated_logistic",
        cv: Any = 5,
        intercept: str = "free",
        learn: Any = "all",
        prior: Any = "auto",
        optimizer: Any = "bfgs",
        solver: Any = "auto",
        starts: Any = "auto",
        multi_class: str = "ovr",
        shared: bool = True,
        class_weight: Any = None,
        refit: str = "rescaled",
        tol: float = 1e-3,
        max_iter: int = 100,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Any = None,
        random_state: Any = None,
    ):
        self.C = C
        self.penalty = penalty
        self.loss = loss
        self.criterion = criterion
        self.cv = cv
        self.intercept = intercept
        self.learn = learn
        self.prior = prior
        self.optimizer = optimizer
        self.solver = solver
        self.starts = starts
        self.multi_class = multi_class
        self.shared = shared
        self.class_weight = class_weight
        self.refit = refit
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    def _kernel(self) -> Kernel:
        return Linear()
