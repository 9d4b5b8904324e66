"""BilevelSVC: a kernel SVM that tunes itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bisvm.core.parts import resolve
from bisvm.estimators.base import BilevelClassifier
from bisvm.estimators.settings import KERNEL_CLASSIFIER, settings_of
from bisvm.kernels import KERNELS, RBF, Kernel, Precomputed
from bisvm.search.settings import Settings

# Two names mean no kernel by themselves: they wait for the data.
_NAMES = {"auto": None, **KERNELS, "precomputed": None}


class BilevelSVC(BilevelClassifier):
    """Kernel SVM that learns C and its kernel's parameters on a validation loss.

    All hyperparameters are learned at once, by gradients of the cross-validated loss
    through the trained machines.

    Parameters
    ----------
    kernel : {"auto", "rbf", "ard", "linear", "poly", "laplacian", "matern32", \
            "matern52", "chi2", "additive_chi2", "mkl", "precomputed"} or Kernel, \
            default="auto"
        "auto" goes from a linear machine to one gamma, one for each feature, and a
        kernel for each group of features (columns of one order of magnitude), as far
        as held-out rows gain beyond their noise; `print(model.kernel_choice_)` says
        what it chose and why. "rbf" has one gamma, "ard" one for each feature, "mkl" a
        weight for each of several kinds; "precomputed" takes k(x_i, x_j) as X. Kernel
        objects combine:
        `RBF().on(["age", "bmi"]) + Linear()`, `k1 * k2`, `RBF() @ Convolution2D(...)`.
    C : "scale", float or array, default="scale"
        Start of C, or its value if `learn` leaves it out. C multiplies the summed loss,
        1/2 |f|^2 + C sum_i s_i loss(u_i), as in scikit-learn. "scale" is 1 for kernels
        with k(x, x) = 1, 1 / (n_features variance) for a linear machine, and 1 / the
        variance in the kernel's own space for others, each divided by the mean sample
        weight: neither the unit of X nor that of the weights matters. It is 1 with
        criterion="structural_risk", which does not learn C.
    penalty : {"shared", "per_feature", "per_group"} or Penalty, default="shared"
        One C, or (linear machines) one for each feature, or one for each group of
        samples in `fit(X, y, sample_groups=...)`: a group with a small C counts little.
        The C of groups differ even where the gain is within its noise: they are asked
        for. Only the prior holds them together, with 0.3 of its strength.
    loss : {"quartic", "modified_log", "squared_hinge", "logistic", "hinge"} or Loss
        What the lower level minimises. "quartic" is the hinge with a rounded corner.
        With the exact "hinge" H is only piecewise smooth; its gradient is that of the
        piece, through the free vectors.
    criterion : {"auto", "blend", "calibrated_logistic", "calibrated_mse", "mse", \
            "squared_hinge", "hinge", "logistic", "smoothed_error", "f1", "auc", \
            "structural_risk"} or Criterion
        What the upper level minimises on held-out points. "auto", the default, is the
        calibrated logistic loss; where the entries of a vector of hyperparameters
        differ it is "blend", which adds half the calibrated squared error. "balanced_"
        before any but the last gives all classes the same weight there;
        `criteria.Weighted("blend", {"sick": 10})` says what errors cost. "auc" asks for
        the order of decision values alone: give it a `threshold`.
        "structural_risk" holds no points out: the training problem's own optimum plus a
        regulariser on the kernel, C as given.
    cv : int, splitter or list of (train, validation) index pairs, default=5
        An int means stratified, shuffled folds, which keep `groups` together and spread
        `sample_groups` if `fit` is given any. Splits are drawn once per fit. With
        `SwapHoldout()` points change places between two parts during the search.
    intercept : {"free", "penalized", "none"}, default="free"
    learn : "all", None, or names of hyperparameters such as "C" or ("C", "gamma")
        What else the kernel's arguments and C say is where learning starts; what is not
        learned stays there. "gamma" also means "k1__gamma" and "k2__gamma".
    prior : "auto", None or Prior
        Pulls the entries of a vector of hyperparameters together; "auto" is
        `criteria.priors.Shrinkage(0.1)`, weakened where the held-out points speak for
        it.
    optimizer : {"auto", "bfgs", "lbfgs", "rprop", "grid", "gradient", "nesterov", \
            "armijo", "spg", "bundle", "variable-metric-bundle", "scan"} or Optimizer, \
            default="auto"
        "auto" is BFGS, and a scan where the exact hinge leaves C alone to be learned.
    solver : {"auto", "newton", "fista"} or Solver, default="auto"
        For the exact hinge {"auto", "smo", "dcd"}; "smo" is LIBSVM, "dcd" for machines
        without a free intercept. "auto" is Newton's method, or what suits the machine.
    starts : "auto", int or list of dicts, default="auto"
        "auto" starts from one common value for each vector of hyperparameters and lets
        them differ only where that lowers the held-out losses beyond their noise; 1 is
        the values given in the arguments alone; a larger number adds the widths at
        which local averages of the labels are best, then random ones.
    multi_class : {"ovr", "ovo"}, default="ovr"
    shared : bool, default=True
        Whether all classes have the same hyperparameters.
    class_weight : None, "balanced", dict or "learn", default=None
        Factors of the sample weights, in training and validation. "learn" gives every
        class a C of its own instead, in training only: the validation loss is the mean
        over samples as it is, so that what is learned lowers that, and not the error of
        a rare class; with criterion="balanced_blend" it is that of both. One C a class
        for all class tasks.
    threshold : None, "accuracy", "balanced_accuracy", "f1", ("f1", class) or dict
        Where zero is moved to after tuning, for two classes: to the decision value that
        serves this goal best on the held-out points. A dict from class to number is
        what an error on its members costs. F1 is that of the second class in sorted
        order, `classes_[1]`, or of the one named.
    refit : {"rescaled", "same"} or float, default="rescaled"
        Whether C is scaled to the larger sample when the final machine is trained; a
        number is the final machine's C.
    approximation : {"auto", "none", "nystroem"}, default="auto"
        "none" trains on the whole Gram matrix, n^2 numbers; "nystroem" on functions of
        a few hundred rows, the landmarks, which carry the kernel. "auto" trains on all
        up to 6000 rows, if the Gram matrix fits, and searches on landmarks where a
        tenth of the rows is enough. Smooth losses only.
    max_memory : float, optional
        Bytes that Gram matrices, or landmarks, may take; by default a quarter of what
        is free. With a number the model is the same on every computer. Without one, a
        warning and `approximation_` say where the free memory has changed the model. At
        most so many of `n_jobs` searches run at a time as fit (on a Dask cluster, the
        number is for each search).
    ensemble : bool or int, default=False
        A number of machines (True: five) that are tuned on splits drawn anew, `n_jobs`
        at a time; the decision function is their mean. `time_limit` is for all of them,
        and `checkpoint` has a file for each.
    tol : float, default=1e-3
        Accuracy of the tuning: about the relative size of a decrease of H that is not
        worth another step.
    max_iter : int, default=100
        Steps of the optimizer in each descent.
    time_limit : float, optional
        Seconds after which tuning stops and the best model so far is fitted.
    n_jobs : int, optional
        Classes with hyperparameters of their own, and starts that are given, that are
        tuned at a time: in threads, or as `joblib.parallel_config` says.
    verbose : int, default=0
        1 shows a live line on a terminal or in a notebook, and else prints a line for
        every evaluation to standard error; 2 prints these lines anywhere.
    callback : callable, optional
        Called with a `bisvm.search.history.Progress` after every evaluation; True
        stops.
    checkpoint : str or path, optional
        File that every evaluation is written to. A fit that was killed is fitted again,
        with the same data and settings, and goes on from there to the same result; the
        callback is told of all evaluations again, and the seconds before count for
        `time_limit`. A folder beside it, `<name>.state`, belongs to it. A number is
        needed as `random_state`. An evaluation costs some milliseconds more, and a line
        of 11 bytes for each row.
    random_state : int, RandomState or None

    Attributes
    ----------
    C_, hyperparameters_ : learned on the folds, natural units
    refit_C_ : C of the final machine
    group_names_, group_weights_ : array of labels, and dict from label to C
        Of the groups that have a C of their own (classes, with class_weight="learn");
        None without such groups.
    kernel_choice_ : `bisvm.search.kernel_choice.KernelChoice`, or None
        What kernel="auto" chose, and why.
    kernel_ : the kernel at the learned values; `kernel_.transform(X)` are the inputs
        behind a transform
    relevance_ : array of shape (n_features,)
        Share of every feature in the mean squared slope of the decision function; None
        for a precomputed kernel.
    criterion_value_ : float
        Mean over folds of the mean validation loss at the optimum; the structural risk
        with its regulariser where that is the criterion.
    expected_score_ : `bisvm.estimators.expected.ExpectedScore`, or None
        Accuracy to expect on new data: `expected_score_.value`, and its 90% interval
        `expected_score_.interval()`, or `interval(n_new=200)` for the score of so many
        rows. None without held-out points (and for pairs of classes tuned apart).
    generalization_gap_ : float, or None
        By how much the accuracy of held-out rows at the optimum is too good, since the
        hyperparameters were chosen by them; it has been taken off `expected_score_`.
    approximation_ : None, or `bisvm.machines.approximation.LeftOut`
        How many landmarks there are, what they leave out of the kernel, and in words
        whether memory has limited their number (`approximation_.limited`).
    threshold_ : float
        What `threshold` has taken off all decision values, and off `intercept_`; other
        goals have their thresholds by `best_threshold(goal)`.
    certificate_ : how near to optimal both levels are, and why tuning stopped
    history_ : list of `bisvm.search.history.Record`, one for every evaluation
    coordinates_ : list of (name, "log" or "linear"), what theta is in these records
    n_svm_evaluations_ : int
        Lower-level problems solved: for `history_`, for other kernels that were tried,
        and to see how far the search can be trusted.
    result_ : OptimizeResult of the descent that was chosen
    estimators_ : None, or list of the members of an ensemble
        The first is the machine of ensemble=False, for a number as random_state. Of an
        ensemble `relevance_`, `criterion_value_`, `threshold_`, `expected_score_` and
        the gap are means over members, `n_svm_evaluations_` is the sum,
        `certificate_` a list, and all else that was learned is the first member's;
        it has no support vectors of its own (see those of its members).
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn
    support_, support_vectors_, dual_coef_, intercept_ : the final kernel machine
    coef_ : array of shape (n_tasks, n_features), linear kernel only

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bisvm import BilevelSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tuned = BilevelSVC(kernel="ard", random_state=0)
    >>> model = make_pipeline(StandardScaler(), tuned)
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        C: Any = "scale",
        penalty: Any = "shared",
        loss: Any = "quartic",
        criterion: Any = "auto",
        cv: Any = 5,
        intercept: str = "free",
        learn: Any = "all",
        prior: Any = "auto",
        optimizer: Any = "auto",
        solver: Any = "auto",
        starts: Any = "auto",
        multi_class: str = "ovr",
        shared: bool = True,
        class_weight: Any = None,
        threshold: Any = None,
        refit: Any = "rescaled",
        approximation: str = "auto",
        max_memory: float | None = None,
        ensemble: Any = False,
        tol: float = 1e-3,
        max_iter: int = 100,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Any = None,
        checkpoint: Any = None,
        random_state: Any = None,
    ):
        self.kernel = kernel
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
        self.threshold = threshold
        self.refit = refit
        self.approximation = approximation
        self.max_memory = max_memory
        self.ensemble = ensemble
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.random_state = random_state

    _parameter_constraints = KERNEL_CLASSIFIER

    @property
    def _pairwise(self) -> bool:  # type: ignore[override]
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _settings(self) -> Settings:
        left_open = isinstance(self.kernel, str) and self.kernel == "auto"
        return settings_of(
            self, self._kernel(), open_kernel=left_open, pairwise=self._pairwise
        )

    def _kernel(self) -> Kernel:
        """The kernel named; one that waits for the data in the two other cases."""
        if self._pairwise:
            return Precomputed(np.empty((0, 0)))
        if isinstance(self.kernel, str) and self.kernel == "auto":
            # Before one is chosen, what the richest of them needs.
            return RBF(per_feature=True)
        return resolve("kernel", self.kernel, _NAMES, Kernel)

    @property
    def feature_importances_(self) -> np.ndarray:
        """`relevance_`, by the name that scikit-learn's feature selectors look for."""
        check_is_fitted(self)
        if self.relevance_ is None:
            raise AttributeError("A precomputed kernel knows of no features.")
        return self.relevance_
