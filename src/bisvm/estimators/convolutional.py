"""ConvolutionalSVC: an SVM on images filtered by filters that it learns."""

from __future__ import annotations

import math
import warnings
from inspect import signature
from itertools import combinations
from typing import Any, Self, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from bisvm.bilinear import (
    Bank,
    LinearConvolution,
    NewtonStep,
    Patches,
    StrengthObjective,
    Trained,
    get_step,
    own_loss,
)
from bisvm.bilinear.patches import check_shape
from bisvm.criteria import get_criterion
from bisvm.estimators.data import Data, prepare
from bisvm.estimators.kernel_convolution import (
    first_transform,
    kernel_machine,
    learned_filters,
)
from bisvm.estimators.resuming import check_resumable
from bisvm.estimators.settings import check_common, chosen, decisions, own_optimizer
from bisvm.estimators.strengths import search_strengths
from bisvm.estimators.watching import (
    DEEPER,
    CallbackSupportMixin,
    Watched,
    with_callbacks,
)
from bisvm.history import Certificate
from bisvm.losses import Loss, get_loss
from bisvm.pieces import Pieces
from bisvm.threads import one_blas_thread
from bisvm.tuning import CALLBACK_STOP, Descent, Run

CHOICES = {
    "learn": ("all", None),
    "multi_class": ("ovo", "ovr"),
}


class ConvolutionalSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """SVM on feature maps x * f, with the filters f learned along with the weights.

    With kernel="linear", for every class task (a pair of classes as a rule), maps w and
    filters f::

        min over w, f, b   lambda_w/2 |w|^2 + lambda_f/2 |f|^2
                           + (1/N) sum_i loss(y_i (sum_k w_k'(x_i * f_k) + b))

    The strengths are learned on a validation loss, by its derivative through the
    trained machines. Only their product matters: at the optimum
    lambda_w |w|^2 = lambda_f |f|^2, and another ratio gives the same decisions with
    another share of the scale. So the strength sqrt(lambda_w lambda_f) is searched and
    the ratio kept as given.

    With another kernel, k(A(x * f), A(y * f)), the filters are the kernel's parameters:
    learned on held-out images together with C, or, as in seed 002, on the structural
    risk. Deeper stacks are kernels for `BilevelSVC`.

    Parameters
    ----------
    image_shape : (length,), (height, width) or (height, width, channels), optional
        Shape of one row of X. By default that of X if X is (n, height, width[,
        channels]), and else a signal, (n_features,).
    filter_shape : tuple of int, default=(5, 5)
        Axes that it leaves out are covered whole: (5, 5) sees all channels.
    n_filters : int, default=1
        Filters of every class task.
    kernel : {"linear", "poly", "rbf", ...} or Kernel, default="linear"
    C : "scale" or float, default="scale"
        Start of C, or its value if it is not learned, as for `BilevelSVC`; not for
        kernel="linear".
    after : Transform, optional
        What comes between the convolution and the kernel, such as
        `Pool2D(2) @ Nonlinearity("abs")`; not for kernel="linear".
    start : {"random", "cosine", "delta", "patches"}, default="random"
        Filters to start from; not for kernel="linear", which starts at random.
    refit : {"rescaled", "same"} or float, default="rescaled"
        C of the final machine, as for `BilevelSVC`: a number switches C on in the last
        training only. Not for kernel="linear".
    lambda_w, lambda_f : float, default=0.1
        Strengths of the penalties; where the search starts if they are learned. With
        `learn=None` also one a class task.
    learn : {"all", None}, default="all"
        None takes the strengths as they are given. With a kernel also names, such as
        "filters" or ("C", "filters").
    solver : {"newton", "pegasos", "liblinear"} or Step, default="newton"
        How the linear SVMs of the alternation are solved. "newton" goes on with joint
        steps to a stationary point, and is the one that strengths can be learned with.
    loss : "auto", "quartic", "hinge", "squared_hinge", ... or Loss, default="auto"
        "auto" is the quartic hinge for "newton" and the exact one for the others.
    multi_class : {"ovo", "ovr"}, default="ovo"
    shared : bool, default=True
        Whether all class tasks have the same strengths.
    class_weight : None, "balanced" or dict, default=None
    criterion : str or Criterion, default="calibrated_logistic"
        What the strengths minimise on held-out images; see `BilevelSVC`.
    cv : int, splitter or list of (train, validation) index pairs, default=5
    optimizer : str or Optimizer, default="bfgs"
    tol : float, default=1e-3
        Accuracy: relative decrease that is not worth another step, of E in the
        alternation and of the criterion in the search.
    max_iter : int, default=100
        Alternations, and steps of the search.
    time_limit : float, optional
        Seconds after which the search stops and the best strengths so far are used.
    n_jobs : int, optional
        Class tasks that are trained at a time, in threads.
    verbose : int, default=0
        1 shows evaluations of the criterion in a live line, or as lines of a log; 2
        always as lines.
    callback : callable, optional
        Called with a `bisvm.history.Progress` after every evaluation; True stops.
    checkpoint : str or path, optional
        File that every evaluation is written to, and from which a fit that was killed
        goes on; see `BilevelSVC`.
    random_state : int, RandomState or None

    Attributes
    ----------
    filters_ : array of shape (n_tasks, n_filters, *filter_shape)
        One bank for all tasks (n_tasks = 1) where a kernel is shared.
    machine_ : the fitted `BilevelSVC`, unless kernel="linear"; it has the rest
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
    history_ : list of `bisvm.history.Record`, one for every evaluation
    coordinates_ : list of (name, "log" or "linear"), what theta is in these records
    certificate_ : how near to optimal both levels are; a list if not shared
    image_shape_, classes_, n_features_in_, feature_names_in_, n_iter_

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bisvm.estimators.convolutional import ConvolutionalSVC
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> model = ConvolutionalSVC((8, 8), (3, 3), random_state=0).fit(X / 16, y)
    >>> model.score(X / 16, y) > 0.95
    True
    >>> model.filters_.shape
    (3, 1, 3, 3)
    """

    def __init__(
        self,
        image_shape: Any = None,
        filter_shape: Any = (5, 5),
        n_filters: int = 1,
        kernel: Any = "linear",
        *,
        C: Any = "scale",
        after: Any = None,
        start: str = "random",
        refit: Any = "rescaled",
        lambda_w: Any = 0.1,
        lambda_f: Any = 0.1,
        learn: Any = "all",
        solver: Any = "newton",
        loss: Any = "auto",
        multi_class: str = "ovo",
        shared: bool = True,
        class_weight: Any = None,
        criterion: Any = "calibrated_logistic",
        cv: Any = 5,
        optimizer: Any = "bfgs",
        tol: float = 1e-3,
        max_iter: int = 100,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Any = None,
        checkpoint: Any = None,
        random_state: Any = None,
    ):
        self.image_shape = image_shape
        self.filter_shape = filter_shape
        self.n_filters = n_filters
        self.kernel = kernel
        self.C = C
        self.after = after
        self.start = start
        self.refit = refit
        self.lambda_w = lambda_w
        self.lambda_f = lambda_f
        self.learn = learn
        self.solver = solver
        self.loss = loss
        self.multi_class = multi_class
        self.shared = shared
        self.class_weight = class_weight
        self.criterion = criterion
        self.cv = cv
        self.optimizer = optimizer
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.random_state = random_state

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Learn the strengths on the splits, then maps and filters on all of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, *image_shape)
        y : array of shape (n_samples,)
            Class labels, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in training and in validation.
        groups : array of shape (n_samples,), optional
            Passed to a group splitter, which keeps a group's samples together.
        """
        self._check_unused()
        watched = Watched(self, X, y, sample_weight)
        if not self._is_linear():
            self._fit_kernel(X, y, sample_weight, groups, watched.callback)
            watched.end()
            return self
        self._check_settings()
        random_state = check_random_state(self.random_state)
        shape, flat = self._images(X)
        data = self._prepare(flat, y, sample_weight, groups, random_state)
        self.image_shape_ = (self.n_features_in_,) if shape is None else shape
        patches = Patches(self.image_shape_, self.filter_shape)
        with one_blas_thread():
            self._fit_linear(patches, data, random_state, watched.callback)
        watched.end()
        return self

    # --- settings and data ------------------------------------------------------------

    def _check_settings(self) -> None:
        """Refuse what can be refused before any work is done."""
        check_common(self, CHOICES)
        for name in ("n_filters", "max_iter"):
            given = getattr(self, name)
            if not isinstance(given, (int, np.integer)) or given < 1:
                raise ValueError(
                    f"{name} must be an integer of at least 1, got {given!r}."
                )
        self._check_strengths()
        step = get_step(self.solver)
        step.check(self._loss())
        if self.learn is not None and not isinstance(step, NewtonStep):
            raise ValueError(
                f"solver={self.solver!r} cannot learn the strengths, for which a "
                "smooth optimum is differentiated: use solver='newton', or learn=None."
            )
        get_criterion(self.criterion)
        own_optimizer(self)
        check_resumable(self)

    def _check_unused(self) -> None:
        """Refuse arguments that would be ignored."""
        linear = self._is_linear()
        default = signature(ConvolutionalSVC).parameters
        for name in _KERNEL_ONLY if linear else _LINEAR_ONLY:
            given, usual = getattr(self, name), default[name].default
            if not (given is usual or np.array_equal(given, usual)):
                raise ValueError(
                    f"{name}={given!r} has no meaning with kernel={self.kernel!r}: "
                    f"leave it at {usual!r}."
                )

    def _check_strengths(self) -> None:
        for name in ("lambda_w", "lambda_f"):
            given = np.asarray(getattr(self, name), dtype=float)
            if not (np.isfinite(given).all() and (given > 0).all()):
                raise ValueError(f"{name} must be positive, got {given!r}.")
            if given.ndim and self.learn is not None:
                raise ValueError(
                    f"{name} has {given.size} entries, and a search starts from one "
                    "number: give one, or learn=None to use them as they are."
                )

    def _loss(self) -> Loss:
        if isinstance(self.loss, str) and self.loss == "auto":
            return own_loss(get_step(self.solver))
        return get_loss(self.loss)

    def _images(self, X: Any) -> tuple[tuple[int, ...] | None, Any]:
        """The shape of an image if it can be known, and X with one row an image."""
        if sparse.issparse(X):
            raise TypeError(
                "Sparse input is not supported: images are filtered whole. Use "
                "X.toarray()."
            )
        if isinstance(X, Pieces):
            raise TypeError("Images are needed in memory, not in chunks: use X[rows].")
        wanted = None
        if self.image_shape is not None:
            wanted = check_shape("image_shape", self.image_shape)
        X = X if hasattr(X, "shape") else np.asarray(X)
        if len(X.shape) > 2:
            X = np.asarray(X)
            if wanted not in (None, X.shape[1:]):
                raise ValueError(
                    f"X holds images of shape {X.shape[1:]}, but image_shape="
                    f"{self.image_shape!r}: make them agree, or pass X of shape "
                    "(n_samples, n_features)."
                )
            wanted, X = X.shape[1:], X.reshape(len(X), -1)
        elif wanted is not None and len(X.shape) == 2:
            n_features = X.shape[1]
            if math.prod(wanted) != n_features:
                raise ValueError(
                    f"image_shape={self.image_shape!r} has {math.prod(wanted)} pixels, "
                    f"but X has {n_features} features: they must be the same number."
                )
        return wanted, X

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        random_state: np.random.RandomState,
    ) -> Data:
        """Validated data; without anything to learn no splits are drawn."""
        if self.learn is not None:
            return prepare(self, X, y, sample_weight, groups, None, random_state)
        given = (X, y, sample_weight, groups, None)
        return prepare(self, *given, random_state, split=False)

    # --- kernel model -----------------------------------------------------------------

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def _fit_kernel(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, callback: Any
    ) -> None:
        shape, flat = self._images(X)
        flat, y = validate_data(self, flat, y, dtype=np.float64, order="C")
        self.image_shape_ = (self.n_features_in_,) if shape is None else shape
        machine = kernel_machine(self, self.image_shape_)
        machine.callback = callback
        self.machine_ = machine.fit(flat, y, sample_weight, groups)
        machine.callback = self.callback
        for name in _OF_THE_MACHINE:
            setattr(self, name, getattr(machine, name))
        kernels = (
            machine.kernel_ if isinstance(machine.kernel_, list) else [machine.kernel_]
        )
        self.filters_ = np.stack([learned_filters(kernel) for kernel in kernels])
        self._maps = [first_transform(kernel) for kernel in kernels]
        self.tasks_ = _task_names(self.classes_.tolist(), self.multi_class)

    # --- linear model -----------------------------------------------------------------

    def _fit_linear(
        self,
        patches: Patches,
        data: Data,
        random_state: np.random.RandomState,
        callback: Any,
    ) -> None:
        model = LinearConvolution(
            patches,
            self.n_filters,
            self._loss(),
            get_step(self.solver),
            self.tol,
            self.max_iter,
            self.n_jobs,
        )
        seed = int(random_state.randint(2**30))
        n_tasks = data.tasks.shape[1]
        strengths = np.array([self._strength(n, n_tasks) for n in _STRENGTHS])
        runs: list[tuple[Run, Descent]] = []
        near = None
        if self.learn is not None:
            runs = search_strengths(self, model, data, seed, callback)
            found = [run.objective.hyperparameters(d.best.theta) for run, d in runs]
            strengths = np.array([[one[n] for one in found] for n in _STRENGTHS])
            objectives = cast(
                "list[StrengthObjective]", [run.objective for run, _ in runs]
            )
            near = (
                [objectives[0].point_of(task) for task in range(n_tasks)]
                if self.shared
                else [one.point_of(0) for one in objectives]
            )
        trained = model.train(
            data.X, data.tasks, data.weight, *strengths, near=near, seed=seed
        )
        self.lambda_w_, self.lambda_f_ = (
            float(s[0]) if s.size == 1 else s for s in strengths
        )
        self._keep(Bank.of(patches, [one.point for one in trained]))
        self._report(trained, runs)

    def _strength(self, name: str, n_tasks: int) -> np.ndarray:
        given = np.atleast_1d(np.asarray(getattr(self, name), dtype=float))
        if given.shape not in ((1,), (n_tasks,)):
            raise ValueError(
                f"{name} has {given.size} entries for {n_tasks} class tasks: give one "
                "number, or one a task."
            )
        return np.broadcast_to(given, n_tasks) if _several(self) else given

    def _model_at(self, data: Data, values: dict[str, Any]) -> Any:
        """A fitted copy at given strengths, for a callback during a run."""
        fixed = clone(self).set_params(
            learn=None, callback=None, checkpoint=None, class_weight=None, **values
        )
        fixed.image_shape = self.image_shape_
        return fixed.fit(data.X, self.classes_[data.y], data.weight)

    def _keep(self, bank: Bank) -> None:
        n_tasks = len(bank.intercept)
        self._bank = bank
        shapes = bank.patches.filter_shape, bank.patches.map_shape
        self.filters_, self.maps_ = (
            part.reshape(n_tasks, -1, *shape)
            for part, shape in zip((bank.filters, bank.maps), shapes, strict=True)
        )
        self.coef_ = bank.templates
        self.intercept_ = bank.intercept
        self._task_kind = self.multi_class
        self.tasks_ = _task_names(self.classes_.tolist(), self.multi_class)

    def _report(self, trained: list[Trained], runs: list[tuple[Run, Descent]]) -> None:
        self.paths_ = [one.path for one in trained]
        self.history_ = [record for run, _ in runs for record in run.history]
        self.coordinates_ = [(name, "log") for name in StrengthObjective.names]
        best = [descent.best.criterion for _, descent in runs]
        self.criterion_value_ = float(np.mean(best)) if best else math.nan
        self.n_iter_ = max(1, *(one.iterations for one in trained), len(self.history_))
        certificates = [_certificate(descent, trained) for _, descent in runs]
        certificates = certificates or [_certificate(None, trained)]
        self.certificate_ = certificates[0] if len(certificates) == 1 else certificates
        for certificate in certificates:
            if not certificate.converged:
                asked = certificate.reason == CALLBACK_STOP
                advice = (
                    "" if asked else "Raise max_iter or time_limit, or loosen tol; "
                )
                warnings.warn(
                    f"Training stopped early: {certificate.reason} The best model so "
                    f"far is kept. {advice}certificate_ says how far it got.",
                    ConvergenceWarning,
                    stacklevel=4 + DEEPER,
                )

    # --- prediction -------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n,) for two classes, (n, n_classes) for more."""
        check_is_fitted(self)
        if not self._is_linear():
            return self.machine_.decision_function(self._rows(X))
        scores = self._rows(X) @ self.coef_.T + self.intercept_
        return decisions(scores, len(self.classes_), self._task_kind)

    def predict(self, X: Any) -> np.ndarray:
        """Class labels."""
        return chosen(self.decision_function(X), self.classes_)

    def feature_maps(self, X: Any, task: int = 0) -> np.ndarray:
        """x * f_k for every image and filter of a class task, (n, n_filters, ...).

        `tasks_[task]` names the classes.
        """
        check_is_fitted(self)
        if not -len(self.tasks_) <= task < len(self.tasks_):
            raise ValueError(
                f"task={task!r} is out of range: there are {len(self.tasks_)} class "
                "tasks, and tasks_ names them."
            )
        if not self._is_linear():
            maps = self._maps[0 if len(self._maps) == 1 else task].apply(self._rows(X))
            return np.moveaxis(maps, -1, 1)
        return self._bank.feature_maps(self._rows(X), task)

    def _rows(self, X: Any) -> np.ndarray:
        """Images as validated rows, of the shape that was trained on."""
        shape, X = self._images(X)
        if shape not in (None, self.image_shape_):
            raise ValueError(
                f"X holds images of shape {shape}, but the model was trained on "
                f"{self.image_shape_}."
            )
        return validate_data(self, X, dtype=np.float64, order="C", reset=False)


_STRENGTHS = ("lambda_w", "lambda_f")
_KERNEL_ONLY = ("C", "after", "start", "refit")
_LINEAR_ONLY = (*_STRENGTHS, "solver")
_OF_THE_MACHINE = (
    "classes_",
    "hyperparameters_",
    "kernel_",
    "C_",
    "criterion_value_",
    "history_",
    "coordinates_",
    "certificate_",
    "n_iter_",
)


def _several(estimator: Any) -> bool:
    return any(np.ndim(getattr(estimator, name)) for name in _STRENGTHS)


def _certificate(descent: Descent | None, trained: list[Trained]) -> Certificate:
    """Both levels together; NaN for what nobody has measured."""
    solved = all(one.converged for one in trained)
    searched = descent is None or (descent.converged and descent.best.converged)
    reason = "Nothing was to be learned." if descent is None else descent.reason
    if not solved:
        reason = "The alternation reached its limit."
    elif descent is not None and not descent.best.converged:
        reason = "The solver of the lower level reached its limit."
    return Certificate(
        lower_residual=math.nan if descent is None else descent.best.residual,
        final_residual=max(one.residual for one in trained),
        upper_gradient=math.nan if descent is None else descent.upper_gradient,
        converged=solved and searched,
        reason=reason,
    )


def _task_names(classes: list[Any], multi_class: str) -> list[tuple[Any, Any]]:
    """(positive, negative) class of every task, in the order of `class_tasks`."""
    if len(classes) == 2:
        return [(classes[1], classes[0])]
    if multi_class == "ovr":
        return [(one, None) for one in classes]
    return list(combinations(classes, 2))
