"""ConvolutionalSVC: a kernel on feature maps whose filters are learned.

    k(x, y) = k0(A(x * f), A(y * f))

with any transform A after the convolution. Sugg 2018, chapter 4, learns f on the
structural risk (algorithm 5). A criterion on held-out images works as well; it also
learns C and the parameters of k0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bisvm.core.types import Array, UserData, UserVector
from bisvm.criteria import Criterion
from bisvm.data.columns import chosen
from bisvm.data.matrices import RowBlocks
from bisvm.estimators.arguments import Callback, ClassArguments
from bisvm.estimators.callbacks import CallbackSupportMixin, Watched, with_callbacks
from bisvm.estimators.docstrings import LIMITS
from bisvm.estimators.fitted import holds_out
from bisvm.estimators.inputs import Given, validated
from bisvm.estimators.svc import BilevelSVC
from bisvm.kernels import Kernel, get_kernel
from bisvm.optimizers import Optimizer
from bisvm.search.history import Progress
from bisvm.search.settings import MultiClass
from bisvm.transforms import Convolution1D, Convolution2D, Transform
from bisvm.transforms.arguments import check_shape

Shape: TypeAlias = tuple[int, ...]
Start: TypeAlias = Literal["random", "cosine", "delta", "patches"]

# Attributes of the machine that the estimator has, too: those of a model of a callback,
# and those that a fit adds.
_LEARNED = ("classes_", "hyperparameters_", "kernel_", "C_", "calibration_")
_KNOWN = ("criterion_value_", "history_", "coordinates_", "certificate_", "n_iter_")

# Texts that the docstrings of convolutional estimators share.
IMAGES = """\
image_shape : (length,), (height, width) or (height, width, channels), optional
        Shape of one row of X. By default that of X if X is (n, height, width[,
        channels]), and otherwise a signal, (n_features,).
    filter_shape : tuple of int, default=(5, 5)
        Axes that it leaves out are covered whole: (5, 5) sees all channels.
    n_filters : int, default=1
        Filters of every class task."""


@dataclass(eq=False, repr=False)
class ImageClassifier(CallbackSupportMixin, ClassifierMixin, ClassArguments):
    """Base of the convolutional classifiers: images as rows, filters by class task."""

    image_shape: Shape | None = None
    filter_shape: Shape = (5, 5)
    n_filters: int = 1
    _: KW_ONLY
    multi_class: MultiClass = "ovo"
    criterion: str | Criterion = "calibrated_logistic"
    optimizer: str | Optimizer = "bfgs"

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: UserData,
        y: UserVector,
        sample_weight: UserVector = None,
        groups: UserVector = None,
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
        given = Given(flat, y, sample_weight, groups)
        self._fit_images(shape, given, watched.callback)
        watched.end()
        return self

    @abstractmethod
    def _fit_images(
        self, shape: Shape | None, given: Given, callback: Callback | None
    ) -> None:
        """Fit to images as rows of X; `shape` is that of an image if it is known."""

    def decision_function(self, X: UserData) -> Array:
        """Compute decision values.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, *image_shape)

        Returns
        -------
        decision : array of shape (n_samples,) or (n_samples, n_classes)
            (n_samples,) for two classes: positive values are the second class.
        """
        check_is_fitted(self)
        return self._decisions(validated_rows(self, X))

    @abstractmethod
    def _decisions(self, rows: Array) -> Array:
        """Decision values of images as rows."""

    def predict(self, X: UserData) -> Array:
        """Predict the classes of images.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, *image_shape)

        Returns
        -------
        y : array of shape (n_samples,)
        """
        return chosen(self.decision_function(X), self.classes_)

    def feature_maps(self, X: UserData, task: int = 0) -> Array:
        """Compute x * f_k for every image and filter of a class task.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, *image_shape)
        task : int, default=0
            Number of the class task; `tasks_[task]` names its classes.

        Returns
        -------
        maps : array of shape (n_samples, n_filters, *map_shape)
        """
        check_is_fitted(self)
        if not -len(self.tasks_) <= task < len(self.tasks_):
            raise ValueError(
                f"task={task!r} is out of range: there are {len(self.tasks_)} class "
                "tasks, and tasks_ names them."
            )
        return self._maps_of(validated_rows(self, X), task)

    @abstractmethod
    def _maps_of(self, rows: Array, task: int) -> Array:
        """Feature maps (n, n_filters, *map_shape) of images as rows."""


@dataclass(eq=False, repr=False)
class ConvolutionalSVC(ImageClassifier):
    __doc__ = f"""Kernel SVM on feature maps x * f, with the filters f learned along
    with C.

    The kernel is k(A(x * f), A(y * f)); the filters f are its parameters, learned on
    held-out images together with C and the kernel's own parameters, or, with
    criterion="structural_risk", on the structural risk (Sugg 2018, chapter 4). Deeper
    stacks are kernels for `BilevelSVC`; `ConvolutionalLinearSVC` is the linear machine.

    Parameters
    ----------
    {IMAGES}
    kernel : str or Kernel, default="rbf"
        The kernel k on feature maps.
    C : "scale" or float, default="scale"
        Start of C, or its value if it is not learned, as for `BilevelSVC`.
    after : Transform, optional
        What comes between the convolution and the kernel, such as
        `Pool2D(2) @ Nonlinearity("abs")`.
    start : {{"random", "cosine", "delta", "patches"}}, default="random"
        Filters to start from.
    learn : "all", None, or names such as "filters" or ("C", "filters"), default="all"
    loss : "quartic", "hinge", "squared_hinge", ... or Loss, default="quartic"
    multi_class : {{"ovo", "ovr"}}, default="ovo"
    shared : bool, default=True
        Whether all class tasks have the same hyperparameters.
    class_weight : None, "balanced" or dict, default=None
    criterion : str or Criterion, default="calibrated_logistic"
        Loss on held-out images that is minimised; see `BilevelSVC`.
    cv : int, splitter or list of (train, validation) index pairs, default=5
    optimizer : str or Optimizer, default="bfgs"
    {LIMITS}

    Attributes
    ----------
    filters_ : array of shape (n_tasks, n_filters, *filter_shape)
        One bank for all tasks (n_tasks = 1) where the kernel is shared.
    machine_ : BilevelSVC
        The fitted machine; it has further attributes.
    tasks_ : list of (class, class or None)
        The class on the positive side, and the other one; None is all others.
    hyperparameters_, kernel_, C_, calibration_, criterion_value_, history_, \
coordinates_, certificate_, n_iter_ : as in `BilevelSVC`
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

    kernel: str | Kernel = "rbf"
    _: KW_ONLY
    C: Literal["scale"] | float = "scale"
    after: Transform | None = None
    start: Start = "random"

    def _fit_images(
        self, shape: Shape | None, given: Given, callback: Callback | None
    ) -> None:
        # scikit-learn notes what it sees of X on an estimator: here on a copy, so that
        # a fit that fails changes nothing.
        seen = type(self)(**self.get_params(deep=False))
        flat, y = validated(seen, given.X, given.y, dtype=np.float64, order="C")
        seen.image_shape_ = (seen.n_features_in_,) if shape is None else shape
        machine = self._machine(seen.image_shape_)
        machine.set_params(callback=_of_whole_models(callback, seen))
        machine.fit(flat, y, given.sample_weight, given.groups)
        self._set_machine(seen, machine.set_params(callback=self.callback))
        for name in _KNOWN:
            setattr(self, name, getattr(machine, name))

    def _machine(self, image_shape: Shape) -> BilevelSVC:
        """The unfitted machine that this estimator stands for."""
        kernel = self._kernel(image_shape)
        own = {"image_shape", "filter_shape", "n_filters", "kernel", "after", "start"}
        given = self.get_params(deep=False).items()
        same = {name: value for name, value in given if name not in own}
        return BilevelSVC(kernel, starts=1, **same)

    def _kernel(self, image_shape: Shape) -> Kernel:
        """k0 @ A @ convolution."""
        kernel, after = get_kernel(self.kernel), self.after
        if after is not None and not isinstance(after, Transform):
            raise TypeError(
                "after must be a transform, such as Pool2D(2) @ Nonlinearity('abs'), "
                f"or None; got {after!r}."
            )
        signal = len(image_shape) == 1 or np.shape(self.filter_shape) == (1,)
        # Transforms are values: they take a number, not a generator.
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            draw = np.random.randint if seed is None else seed.randint
            seed = draw(2**31 - 1)
        convolution = (Convolution1D if signal else Convolution2D)(
            n_filters=self.n_filters,
            filter_shape=self.filter_shape,
            start=self.start,
            shape=image_shape,
            random_state=int(seed),
        )
        maps = convolution if after is None else after @ convolution
        return (kernel @ maps).validate()

    def _set_machine(self, seen: ConvolutionalSVC, machine: BilevelSVC) -> None:
        """Set what was learned, and what predicts.

        seen : a copy that knows the shape of X
        """
        self.__dict__.pop("feature_names_in_", None)
        for name in ("image_shape_", "n_features_in_", "feature_names_in_"):
            if hasattr(seen, name):
                setattr(self, name, getattr(seen, name))
        self.machine_ = machine
        for name in _LEARNED:
            setattr(self, name, getattr(machine, name))
        kernels = machine.kernel_
        kernels = kernels if isinstance(kernels, list) else [kernels]
        found = map(convolution_of, kernels)
        self._maps = [one for one in found if one is not None]
        self.filters_ = np.stack([np.asarray(one.filters) for one in self._maps])
        self.tasks_ = task_names(machine.classes_.tolist(), self.multi_class)

    def _decisions(self, rows: Array) -> Array:
        return self.machine_.decision_function(rows)

    def _maps_of(self, rows: Array, task: int) -> Array:
        bank = self._maps[0 if len(self._maps) == 1 else task]
        return np.moveaxis(bank.apply(rows), -1, 1)

    @available_if(holds_out)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: UserData) -> Array:
        """Predict probabilities (n, n_classes) of the classes; see `BilevelSVC`."""
        p: Array = np.exp(self.predict_log_proba(X))
        return p

    @available_if(holds_out)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: UserData) -> Array:
        """Predict logarithms of probabilities; see `BilevelSVC`."""
        check_is_fitted(self)
        log_p: Array = self.machine_.predict_log_proba(validated_rows(self, X))
        return log_p

    @available_if(holds_out)  # type: ignore[untyped-decorator]
    def predict_set(
        self,
        X: UserData,
        coverage: float = 0.9,
        class_conditional: bool = False,
        smoothing: bool = False,
    ) -> Array:
        """Predict sets (n, n_classes) that hold the true class; see `BilevelSVC`."""
        check_is_fitted(self)
        rows = validated_rows(self, X)
        given = coverage, class_conditional, smoothing
        sets: Array = self.machine_.predict_set(rows, *given)
        return sets


def convolution_of(kernel: Kernel | None) -> Convolution1D | Convolution2D | None:
    """The convolution through which the inputs of a kernel go first; None if none."""
    transform = getattr(kernel, "transform", None)
    first = getattr(transform, "transforms", (transform,))[0]
    return first if isinstance(first, (Convolution1D, Convolution2D)) else None


def _of_whole_models(
    callback: Callback | None, seen: ConvolutionalSVC
) -> Callback | None:
    """The callback, with convolutional estimators as models instead of machines."""
    if callback is None:
        return None

    def tell(progress: Progress) -> object:
        def model() -> ConvolutionalSVC:
            copy = type(seen)(**seen.get_params(deep=False))
            copy._set_machine(seen, progress.model())
            return copy

        return callback(progress.with_model(model))

    return tell


# --- images as rows of X --------------------------------------------------------------


def flattened(X: UserData, image_shape: Shape | None) -> tuple[Shape | None, UserData]:
    """The shape of an image if it can be known, and X with one row per image."""
    if sparse.issparse(X):
        raise TypeError(
            "Sparse input is not supported: images are filtered whole. Use X.toarray()."
        )
    if isinstance(X, RowBlocks):
        raise TypeError("Images are needed in memory, not in chunks: use X[rows].")
    wanted: Shape | None = None
    if image_shape is not None:
        wanted = check_shape("image_shape", image_shape)
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) > 2:
        X = np.asarray(X)
        if wanted not in (None, X.shape[1:]):
            raise ValueError(
                f"X holds images of shape {X.shape[1:]}, but image_shape="
                f"{image_shape!r}: make them agree, or pass X of shape "
                "(n_samples, n_features)."
            )
        wanted, X = X.shape[1:], X.reshape(len(X), -1)
    elif wanted is not None and len(X.shape) == 2:
        n_features = X.shape[1]
        if math.prod(wanted) != n_features:
            raise ValueError(
                f"image_shape={image_shape!r} has {math.prod(wanted)} pixels, but X "
                f"has {n_features} features: they must be the same number."
            )
    return wanted, X


def validated_rows(estimator: Any, X: UserData) -> Array:
    """Images as rows, of the shape that a fitted estimator was trained on."""
    shape, X = flattened(X, estimator.image_shape)
    if shape not in (None, estimator.image_shape_):
        raise ValueError(
            f"X holds images of shape {shape}, but the model was trained on "
            f"{estimator.image_shape_}."
        )
    rows: Array = validated(estimator, X, dtype=np.float64, order="C", reset=False)
    return rows


def task_names(classes: list[Any], multi_class: MultiClass) -> list[tuple[Any, Any]]:
    """(positive, negative) class of every task, in the order of `class_tasks`."""
    if len(classes) == 2:
        return [(classes[1], classes[0])]
    if multi_class == "ovr":
        return [(one, None) for one in classes]
    return list(combinations(classes, 2))
