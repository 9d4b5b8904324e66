"""ConvolutionalLinearSVC: a linear SVM on images, with filters that it learns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from bisvm.core.threads import one_blas_thread
from bisvm.core.types import Array, ArrayLike
from bisvm.core.warning import warn_user
from bisvm.criteria import Criterion, get_criterion
from bisvm.data.columns import decisions
from bisvm.data.leave_one_out import is_leave_one_out
from bisvm.estimators.arguments import COMMON, Callback
from bisvm.estimators.class_inputs import prepare_classes
from bisvm.estimators.convolutional import IMAGES, ImageClassifier, Shape, task_names
from bisvm.estimators.docstrings import LIMITS
from bisvm.estimators.inputs import Given, check_range
from bisvm.losses import Loss, get_loss
from bisvm.optimizers import Optimizer
from bisvm.published.bilinear.patches import Patches
from bisvm.published.bilinear.problem import BilinearProblem, Point
from bisvm.published.bilinear.steps import HalfStep, NewtonStep, get_step, own_loss
from bisvm.published.bilinear.strengths import (
    FoundStrengths,
    StrengthObjective,
    search_strengths,
)
from bisvm.published.bilinear.training import TrainedBilinear, train
from bisvm.search.checkpoint import check_resumable
from bisvm.search.descent import Descent
from bisvm.search.history import Certificate
from bisvm.search.reasons import ASKED, LOWER_LIMIT, Reason
from bisvm.search.settings import Data, TaskKind

_STRENGTHS = ("lambda_w", "lambda_f")


@dataclass(eq=False, repr=False)
class ConvolutionalLinearSVC(ImageClassifier):
    __doc__ = f"""Linear SVM on feature maps x * f, with learned filters f.

    For every class task (a pair of classes as a rule), maps w and filters f::

        min over w, f, b   lambda_w/2 |w|^2 + lambda_f/2 |f|^2
                           + (1/N) sum_i loss(y_i (sum_k w_k'(x_i * f_k) + b))

    The strengths are learned on a validation loss, by its derivative through the
    trained machines. Only their product matters: at the optimum
    lambda_w |w|^2 = lambda_f |f|^2, and another ratio gives the same decisions. So the
    strength sqrt(lambda_w lambda_f) is searched and the ratio kept as given (Sugg 2018,
    chapter 3).

    Parameters
    ----------
    {IMAGES}
    lambda_w, lambda_f : float, default=0.1
        Strengths of the penalties; where the search starts if they are learned. With
        `learn=None` also an array with one value per class task.
    learn : {{"all", None}}, default="all"
        None takes the strengths as they are given.
    solver : {{"newton", "pegasos", "liblinear"}} or Step, default="newton"
        How the linear SVMs of the alternation are solved. "newton" goes on with joint
        steps to a stationary point, and is the one that strengths can be learned with.
    loss : "auto", "quartic", "hinge", "squared_hinge", ... or Loss, default="auto"
        "auto" is a hinge with a narrow rounded corner, `Quartic(0.125)`, for "newton",
        and the exact hinge for the others.
    multi_class : {{"ovo", "ovr"}}, default="ovo"
    shared : bool, default=True
        Whether all class tasks have the same strengths.
    class_weight : None, "balanced" or dict, default=None
    criterion : str or Criterion, default="calibrated_logistic"
        What the strengths minimise on held-out images; see `BilevelSVC`.
    cv : int, splitter or list of (train, validation) index pairs, default=5
    optimizer : str or Optimizer, default="bfgs"
    {LIMITS}

    Attributes
    ----------
    filters_ : array of shape (n_tasks, n_filters, *filter_shape)
    maps_ : array of shape (n_tasks, n_filters, *map_shape)
        w, the weights of the feature maps.
    coef_ : array of shape (n_tasks, n_features)
        The model is linear in the image: decision values are X @ coef_.T + intercept_.
    intercept_ : array of shape (n_tasks,)
    tasks_ : list of (class, class or None)
        The class on the positive side, and the other one; None is all others.
    lambda_w_, lambda_f_ : float, or array of shape (n_tasks,) if not shared
    paths_ : list of arrays
        E after every half step of a task's alternation, and after the joint steps.
    criterion_value_ : float, NaN if nothing was learned
    history_ : list of `bisvm.search.history.Record`, one for every evaluation
    coordinates_ : list of (name, "log" or "linear"), what theta is in these records
    certificate_ : how close to optimal both levels are; a list if not shared
    image_shape_, classes_, n_features_in_, feature_names_in_, n_iter_

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bisvm import ConvolutionalLinearSVC
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> model = ConvolutionalLinearSVC((8, 8), (3, 3), random_state=0).fit(X / 16, y)
    >>> model.score(X / 16, y) > 0.95
    True
    >>> model.filters_.shape
    (3, 1, 3, 3)
    """

    _parameter_constraints = {
        **COMMON,
        "learn": [StrOptions({"all"}), None],
        "n_filters": [Interval(Integral, 1, None, closed="left")],
    }

    _: KW_ONLY
    lambda_w: float | ArrayLike = 0.1
    lambda_f: float | ArrayLike = 0.1
    learn: Literal["all"] | None = "all"
    solver: str | HalfStep = "newton"
    loss: str | Loss = "auto"
    multi_class: TaskKind = "ovo"

    def _fit_images(
        self, shape: Shape | None, given: Given, callback: Callback | None
    ) -> None:
        _, _, criterion, _ = parts = self._parts()
        random_state = check_random_state(self.random_state)
        data = prepare_classes(
            self,
            given,
            random_state,
            criterion=criterion,
            cv=None if self.learn is None else self.cv,
            multi_class=self.multi_class,
            class_weight=self.class_weight,
        )
        check_range(data.X, data.weight)
        shape = (data.n_features,) if shape is None else shape
        patches = Patches(shape, self.filter_shape)
        # A step too far is not finite, and is not taken.
        with one_blas_thread(), np.errstate(all="ignore"):
            self._fit(parts, patches, data, random_state, callback)

    def _parts(self) -> tuple[HalfStep, Loss, Criterion, Optimizer]:
        """Return the parts named by the arguments, after a check of the arguments."""
        self._validate_params()
        self._check_strengths()
        step = get_step(self.solver)
        automatic = isinstance(self.loss, str) and self.loss == "auto"
        loss = own_loss(step) if automatic else get_loss(self.loss)
        step.check(loss)
        if self.learn is not None and not isinstance(step, NewtonStep):
            raise ValueError(
                f"solver={self.solver!r} cannot learn the strengths, for which a "
                "smooth optimum is differentiated: use solver='newton', or learn=None."
            )
        if is_leave_one_out(self.cv):
            raise ValueError(
                "cv='loo' is for machines with one convex training problem. Use cv=5."
            )
        optimizer = self._optimizer()
        if self.checkpoint is not None:
            check_resumable(self.checkpoint, self.random_state, optimizer)
        return step, loss, get_criterion(self.criterion), optimizer

    def _check_strengths(self) -> None:
        for name in _STRENGTHS:
            given = np.asarray(getattr(self, name), dtype=float)
            if not (np.isfinite(given).all() and (given > 0).all()):
                raise ValueError(f"{name} must be positive, got {given!r}.")
            if given.ndim and self.learn is not None:
                raise ValueError(
                    f"{name} has {given.size} entries, and a search starts from one "
                    "number: give one, or learn=None to use them as they are."
                )

    def _fit(
        self,
        parts: tuple[HalfStep, Loss, Criterion, Optimizer],
        patches: Patches,
        data: Data,
        random_state: np.random.RandomState,
        callback: Callback | None,
    ) -> None:
        step, loss, criterion, optimizer = parts
        seed = int(random_state.randint(2**30))
        n_tasks = data.tasks.shape[1]
        strengths = np.array([self._strength(n, n_tasks) for n in _STRENGTHS])
        found: list[FoundStrengths] = []
        starts: list[Point | None] = [None] * n_tasks
        if self.learn is not None:
            found = search_strengths(
                type(self).__name__,
                self.get_params(deep=False),
                patches,
                data,
                loss,
                criterion,
                optimizer,
                seed,
                callback,
                self._builder(data, patches),
            )
            strengths = np.array([[one.values[n] for one in found] for n in _STRENGTHS])
            starts = (
                [found[0].point_of(task) for task in range(n_tasks)]
                if self.shared
                else [one.point_of(0) for one in found]
            )
        X, by_task = np.asarray(data.X), np.broadcast_to(strengths, (2, n_tasks))

        def trained(task: int) -> TrainedBilinear:
            rows = np.flatnonzero(data.tasks[:, task])
            lambda_w, lambda_f = by_task[:, task]
            problem = BilinearProblem.of(
                patches,
                X[rows],
                data.tasks[rows, task],
                loss,
                data.weight[rows],
                lambda_w=float(lambda_w),
                lambda_f=float(lambda_f),
            )
            return train(
                problem,
                step,
                self.n_filters,
                start=starts[task],
                tol=self.tol,
                max_iter=self.max_iter,
                seed=seed + task,
            )

        all_tasks = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(trained)(task) for task in range(n_tasks)
        )
        self._set_fitted(data, patches, strengths, all_tasks, found)

    def _strength(self, name: str, n_tasks: int) -> Array:
        given = np.atleast_1d(np.asarray(getattr(self, name), dtype=float))
        if given.shape not in ((1,), (n_tasks,)):
            raise ValueError(
                f"{name} has {given.size} entries for {n_tasks} class tasks: give one "
                "number, or one per task."
            )
        several = any(np.ndim(getattr(self, own)) for own in _STRENGTHS)
        return np.broadcast_to(given, n_tasks) if several else given

    def _builder(
        self, data: Data, patches: Patches
    ) -> Callable[..., ConvolutionalLinearSVC]:
        """Return what makes fitted copies at given strengths, for a callback."""

        def build(values: dict[str, float]) -> ConvolutionalLinearSVC:
            fixed: ConvolutionalLinearSVC = clone(self).set_params(
                learn=None,
                callback=None,
                checkpoint=None,
                class_weight=None,
                image_shape=patches.image_shape,
                **values,
            )
            return fixed.fit(data.X, data.classes[data.y], data.weight)

        return build

    # --- fitted attributes ------------------------------------------------------------

    def _set_fitted(
        self,
        data: Data,
        patches: Patches,
        strengths: Array,
        trained: list[TrainedBilinear],
        found: list[FoundStrengths],
    ) -> None:
        """Set all that a fit leaves on the estimator."""
        self.classes_, self.n_features_in_ = data.classes, data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        self.image_shape_ = patches.image_shape
        self.lambda_w_, self.lambda_f_ = (
            float(s[0]) if s.size == 1 else s for s in strengths
        )
        points, n_tasks = [one.point for one in trained], len(trained)
        self._patches, self.multi_class_ = patches, self.multi_class
        self.filters_ = np.stack([point.filters for point in points]).reshape(
            n_tasks, -1, *patches.filter_shape
        )
        self.maps_ = np.stack([point.maps for point in points]).reshape(
            n_tasks, -1, *patches.map_shape
        )
        self.coef_ = np.stack(
            [patches.template(point.maps, point.filters) for point in points]
        )
        self.intercept_ = np.array([point.intercept for point in points])
        self.tasks_ = task_names(self.classes_.tolist(), self.multi_class)
        self.paths_ = [one.path for one in trained]
        self.history_ = [record for one in found for record in one.records]
        self.coordinates_ = [(name, "log") for name in StrengthObjective.names]
        best = [one.descent.best.criterion for one in found]
        self.criterion_value_ = float(np.mean(best)) if best else math.nan
        self.n_iter_ = max(1, *(one.iterations for one in trained), len(self.history_))
        certificates = [_certificate(one.descent, trained) for one in found]
        certificates = certificates or [_certificate(None, trained)]
        self.certificate_ = certificates[0] if len(certificates) == 1 else certificates
        _warn_of_doubt(certificates)

    # --- prediction -------------------------------------------------------------------

    def _decisions(self, rows: Array) -> Array:
        scores = rows @ self.coef_.T + self.intercept_
        return decisions(scores, len(self.classes_), self.multi_class_)

    def _maps_of(self, rows: Array, task: int) -> Array:
        filters = self.filters_[task].reshape(len(self.filters_[task]), -1)
        flat = rows @ self._patches.filtering(filters)
        return flat.reshape(len(flat), -1, *self._patches.map_shape)


def _warn_of_doubt(certificates: list[Certificate]) -> None:
    """Warn of training or a search that stopped early."""
    for certificate in certificates:
        if certificate.converged:
            continue
        asked = certificate.why in ASKED
        advice = "" if asked else "Raise max_iter or time_limit, or loosen tol; "
        warn_user(
            f"Training stopped early: {certificate.reason} The best model so far is "
            f"kept. {advice}certificate_ says how far it got.",
            ConvergenceWarning,
        )


def _certificate(
    descent: Descent | None, trained: list[TrainedBilinear]
) -> Certificate:
    """Return the certificate of both levels; NaN for what was not measured."""
    solved = all(one.converged for one in trained)
    searched = descent is None or (descent.converged and descent.best.converged)
    why = Reason("Nothing was to be learned.") if descent is None else descent.reason
    if not solved:
        why = Reason("The alternation reached its limit.")
    elif descent is not None and not descent.best.converged:
        why = LOWER_LIMIT
    return Certificate(
        lower_residual=math.nan if descent is None else descent.best.residual,
        final_residual=max(one.residual for one in trained),
        upper_gradient=math.nan if descent is None else descent.upper_gradient,
        converged=solved and searched,
        why=why,
    )
