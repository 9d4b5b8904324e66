"""ConvolutionalSVC: a kernel SVM on images filtered by filters that it learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bisvm.estimators.base import set_or_remove
from bisvm.estimators.images import check_task, flattened, task_names, validated_rows
from bisvm.estimators.kernel_convolution import (
    first_transform,
    kernel_machine,
    learned_filters,
)
from bisvm.estimators.svc import BilevelSVC
from bisvm.estimators.watching import CallbackSupportMixin, Watched, with_callbacks
from bisvm.search.history import Progress

# What the machine inside has learned, and what it knows of its search.
_LEARNED = ("classes_", "hyperparameters_", "kernel_", "C_")
_KNOWN = ("criterion_value_", "history_", "coordinates_", "certificate_", "n_iter_")


class ConvolutionalSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Kernel SVM on feature maps x * f, with the filters f learned along with C.

    The kernel is k(A(x * f), A(y * f)); the filters f are its parameters, learned on
    held-out images together with C and the kernel's own parameters, or, with
    criterion="structural_risk", on the structural risk (Sugg 2018, chapter 4). Deeper
    stacks are kernels for `BilevelSVC`; `ConvolutionalLinearSVC` is the linear machine.

    Parameters
    ----------
    image_shape : (length,), (height, width) or (height, width, channels), optional
        Shape of one row of X. By default that of X if X is (n, height, width[,
        channels]), and else a signal, (n_features,).
    filter_shape : tuple of int, default=(5, 5)
        Axes that it leaves out are covered whole: (5, 5) sees all channels.
    n_filters : int, default=1
        Filters of every class task.
    kernel : {"rbf", "poly", "linear", ...} or Kernel, default="rbf"
    C : "scale" or float, default="scale"
        Start of C, or its value if it is not learned, as for `BilevelSVC`.
    after : Transform, optional
        What comes between the convolution and the kernel, such as
        `Pool2D(2) @ Nonlinearity("abs")`.
    start : {"random", "cosine", "delta", "patches"}, default="random"
        Filters to start from.
    refit : {"rescaled", "same"} or float, default="rescaled"
        C of the final machine, as for `BilevelSVC`: a number switches C on in the last
        training only.
    learn : "all", None, or names such as "filters" or ("C", "filters"), default="all"
    loss : "quartic", "hinge", "squared_hinge", ... or Loss, default="quartic"
    multi_class : {"ovo", "ovr"}, default="ovo"
    shared : bool, default=True
        Whether all class tasks have the same hyperparameters.
    class_weight : None, "balanced" or dict, default=None
    criterion : str or Criterion, default="calibrated_logistic"
        What is minimised on held-out images; see `BilevelSVC`.
    cv : int, splitter or list of (train, validation) index pairs, default=5
    optimizer : str or Optimizer, default="bfgs"
    tol : float, default=1e-3
        Accuracy: relative decrease of the criterion that is not worth another step.
    max_iter : int, default=100
        Steps of the search.
    time_limit : float, optional
        Seconds after which the search stops and the best model so far is fitted.
    n_jobs : int, optional
        Class tasks that are tuned at a time, in threads.
    verbose : int, default=0
        1 shows evaluations of the criterion in a live line, or as lines of a log; 2
        always as lines.
    callback : callable, optional
        Called with a `bisvm.search.history.Progress` after every evaluation; True
        stops.
    checkpoint : str or path, optional
        File that every evaluation is written to, and from which a fit that was killed
        goes on; see `BilevelSVC`.
    random_state : int, RandomState or None

    Attributes
    ----------
    filters_ : array of shape (n_tasks, n_filters, *filter_shape)
        One bank for all tasks (n_tasks = 1) where the kernel is shared.
    machine_ : the fitted `BilevelSVC`; it has the rest
    tasks_ : list of (class, class or None)
        The class on the positive side, and the other one; None is all others.
    hyperparameters_, kernel_, C_, criterion_value_, history_, coordinates_,
    certificate_, n_iter_ : as in `BilevelSVC`
    image_shape_, classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bisvm import ConvolutionalSVC
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> model = ConvolutionalSVC((8, 8), (3, 3), cv=3, max_iter=5, random_state=0)
    >>> model.fit(X[:100] / 16, y[:100]).score(X / 16, y) > 0.95
    True
    >>> model.filters_.shape
    (1, 1, 3, 3)
    """

    def __init__(
        self,
        image_shape: Any = None,
        filter_shape: Any = (5, 5),
        n_filters: int = 1,
        kernel: Any = "rbf",
        *,
        C: Any = "scale",
        after: Any = None,
        start: str = "random",
        refit: Any = "rescaled",
        learn: Any = "all",
        loss: Any = "quartic",
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
        self.learn = learn
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
        """Learn filters and hyperparameters on the splits, then train on all of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, *image_shape)
        y : array of shape (n_samples,)
            Class labels, of any type.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples' losses, in training and in validation.
        groups : array of shape (n_samples,), optional
            Passed to a group splitter, which keeps a group's samples together.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        watched = Watched(self, X, y, sample_weight)
        shape, flat = flattened(X, self.image_shape)
        # scikit-learn keeps what it sees of X on an estimator: here on a copy, so that
        # a fit that fails leaves nothing behind.
        seen = type(self)(**self.get_params(deep=False))
        flat, y = validate_data(seen, flat, y, dtype=np.float64, order="C")
        seen.image_shape_ = (seen.n_features_in_,) if shape is None else shape
        callback = _of_whole_models(watched.callback, seen)
        machine = kernel_machine(self, seen.image_shape_, callback)
        machine.fit(flat, y, sample_weight, groups)
        self._set_machine(seen, machine.set_params(callback=self.callback))
        for name in _KNOWN:
            setattr(self, name, getattr(machine, name))
        watched.end()
        return self

    def _set_machine(self, seen: ConvolutionalSVC, machine: BilevelSVC) -> None:
        """Set what was learned, and what predicts.

        seen : a copy that knows what X looks like
        """
        for name in ("image_shape_", "n_features_in_", "feature_names_in_"):
            set_or_remove(self, name, getattr(seen, name, None))
        self.machine_ = machine
        for name in _LEARNED:
            setattr(self, name, getattr(machine, name))
        kernels: Any = machine.kernel_
        kernels = kernels if isinstance(kernels, list) else [kernels]
        self.filters_ = np.stack([learned_filters(kernel) for kernel in kernels])
        self._maps = [first_transform(kernel) for kernel in kernels]
        self.tasks_ = task_names(self.classes_.tolist(), self.multi_class)

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n,) for two classes, (n, n_classes) for more."""
        check_is_fitted(self)
        return self.machine_.decision_function(validated_rows(self, X))

    def predict(self, X: Any) -> np.ndarray:
        """Class labels."""
        check_is_fitted(self)
        return self.machine_.predict(validated_rows(self, X))

    def feature_maps(self, X: Any, task: int = 0) -> np.ndarray:
        """x * f_k for every image and filter of a class task, (n, n_filters, ...).

        `tasks_[task]` names the classes.
        """
        check_is_fitted(self)
        check_task(task, self.tasks_)
        bank = self._maps[0 if len(self._maps) == 1 else task]
        return np.moveaxis(bank.apply(validated_rows(self, X)), -1, 1)


def _of_whole_models(
    callback: Callable[[Progress], Any] | None, seen: ConvolutionalSVC
) -> Callable[[Progress], Any] | None:
    """The callback, whose models are convolutional, and not the machines inside."""
    if callback is None:
        return None

    def tell(progress: Progress) -> Any:
        def model() -> ConvolutionalSVC:
            copy = type(seen)(**seen.get_params(deep=False))
            copy._set_machine(seen, progress.model())
            return copy

        return callback(progress.with_model(model))

    return tell
