"""BilevelLinearSVC: a linear SVM that tunes itself."""

from __future__ import annotations

from typing import Any

from bisvm.estimators.base import BilevelClassifier
from bisvm.estimators.settings import CLASSIFIER, settings_of
from bisvm.kernels import Linear
from bisvm.search.settings import Settings


class BilevelLinearSVC(BilevelClassifier):
    """Linear SVM that learns C, or one C for each feature, on a validation loss.

    Dense or sparse (CSR) data; sparse data stay sparse. Data that do not fit in memory
    are given as `bisvm.Chunks`, or as a memory-mapped array; memory is needed for a
    chunk then, and for about 16 numbers a sample and split. Of Dask arrays and data
    frames the workers hold the rows.

    Parameters
    ----------
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
        piece, through the vectors on the margin.
    criterion : {"auto", "blend", "calibrated_logistic", "calibrated_mse", "mse", \
            "squared_hinge", "hinge", "logistic", "smoothed_error", "f1", "auc"} \
            or Criterion, default="blend"
        What the upper level minimises on held-out points. "blend" is the calibrated
        logistic loss with half the calibrated squared error. "balanced_" before any
        name gives all classes the same weight there;
        `criteria.Weighted("blend", {"sick": 10})` says what errors cost. "auc" asks for
        the order of decision values alone: give it a `threshold`.
    cv : int, splitter or list of (train, validation) index pairs, default=5
        An int means stratified, shuffled folds, which keep `groups` together and spread
        `sample_groups` if `fit` is given any. Splits are drawn once per fit. With
        `SwapHoldout()` points change places between two parts during the search.
    intercept : {"free", "penalized", "none"}, default="free"
    learn : "all", or names of hyperparameters such as "C" or ("C", "gamma")
    prior : "auto", None or Prior
        Pulls the entries of a vector of hyperparameters together; "auto" is
        `criteria.priors.Shrinkage(0.1)`, weakened where the held-out points speak for
        it.
    optimizer : {"auto", "bfgs", "lbfgs", "rprop", "bundle", "variable-metric-bundle", \
            "scan", "grid"} or Optimizer, default="auto"
        "auto", the default, is BFGS, and a scan where the exact hinge leaves one C to
        be learned. Also {"fold-newton", "sgd-dcd", "bilevel-sgd"}, for one C of a
        machine with the hinge on both levels and no free intercept; these have their
        own start, and go to their end whatever max_iter, time_limit and callback say.
    solver : {"auto", "newton", "fista"} or Solver, default="auto"
        For the exact hinge {"auto", "dcd", "pegasos", "sharpening"}.
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
    kernel_ : the kernel at the learned values
    relevance_ : array of shape (n_features,)
        Share of every feature in the mean squared slope of the decision function.
    criterion_value_ : float
        Mean over folds of the mean validation loss at the optimum.
    expected_score_ : `bisvm.estimators.expected.ExpectedScore`, or None
        Accuracy to expect on new data: `expected_score_.value`, and its 90% interval
        `expected_score_.interval()`, or `interval(n_new=200)` for the score of so many
        rows. None without held-out points (and for pairs of classes tuned apart).
    generalization_gap_ : float, or None
        By how much the accuracy of held-out rows at the optimum is too good, since the
        hyperparameters were chosen by them; it has been taken off `expected_score_`.
    threshold_ : float
        What `threshold` has taken off all decision values, and off `intercept_`; other
        goals have their thresholds by `best_threshold(goal)`.
    certificate_ : how near to optimal both levels are, and why tuning stopped
    history_ : list of `bisvm.search.history.Record`, one for every evaluation
    coordinates_ : list of (name, "log" or "linear"), what theta is in these records
    n_svm_evaluations_ : int
        Lower-level problems solved: for `history_`, and to see how far the search can
        be trusted.
    result_ : OptimizeResult of the descent that was chosen
    estimators_ : None, or list of the members of an ensemble
        The first is the machine of ensemble=False, for a number as random_state. Of an
        ensemble `relevance_`, `criterion_value_`, `threshold_`, `expected_score_` and
        the gap are means over members, `n_svm_evaluations_` is the sum,
        `certificate_` a list, and all else that was learned is the first member's;
        `coef_` and `intercept_` are means as well.
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn
    coef_, intercept_ : arrays of shape (n_tasks, n_features) and (n_tasks,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bisvm import BilevelLinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> BilevelLinearSVC(random_state=0).fit(X, y).score(X, y) > 0.9
    True

    Data in chunks, with their labels; here they are two, and could be thousands:

    >>> from bisvm import Chunks
    >>> def read():
    ...     yield X[::2], y[::2]
    ...     yield X[1::2], y[1::2]
    >>> data = Chunks(read)
    >>> BilevelLinearSVC(random_state=0).fit(data).score(data, data.y) > 0.9
    True
    """

    def __init__(
        self,
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
        self.ensemble = ensemble
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.random_state = random_state

    _parameter_constraints = CLASSIFIER

    def _settings(self) -> Settings:
        return settings_of(self, Linear())
