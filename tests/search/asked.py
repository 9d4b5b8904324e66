"""Settings and data of small fits, without an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from bisvm.criteria import get_criterion
from bisvm.criteria.priors import get_prior
from bisvm.data.splits import freeze_splits
from bisvm.data.targets import ClassLabels, class_tasks
from bisvm.kernels import get_kernel
from bisvm.losses import get_loss
from bisvm.machines.model import Model
from bisvm.machines.regularization import get_regularization
from bisvm.optimizers import get_optimizer
from bisvm.search.settings import Data, Settings
from bisvm.solvers import get_solver
from tests.problems import toy_data


def make_settings(
    kernel: Any = "rbf", loss: str = "quartic", regularization="shared", **given: Any
) -> Settings:
    model = Model(
        get_kernel(kernel),
        get_regularization(regularization),
        1.0,
        get_loss(loss),
        "free",
    )
    return Settings(
        model=model,
        criterion=get_criterion(given.pop("criterion", "auto")),
        prior=get_prior("auto"),
        solver=get_solver("auto", model.loss),
        optimizer=get_optimizer("auto"),
        **given,
    )


def make_data(X: Any = None, y: Any = None, **given: Any) -> Data:
    if X is None:
        X, y = toy_data(60)
    n, classes = len(y), np.unique(y)
    ones = np.ones(n)
    return Data(
        X=X,
        y=y,
        rows=np.arange(n),
        weight=ones,
        sample_weight=ones,
        held_weight=ones,
        tasks=class_tasks(y, len(classes), "ovr"),
        splits=freeze_splits(3, X, y, random_state=np.random.RandomState(0)),
        targets=ClassLabels(len(classes)),
        classes=classes,
        n_features=X.shape[1],
        **given,
    )
