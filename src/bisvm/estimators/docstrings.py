"""Texts that the docstrings of several estimators share."""

# Limits of a search, and who watches it.
LIMITS = """\
tol : float, default=1e-3
        Accuracy of the search: it stops when a step would lower H by less than a tenth
        of this, relative to H.
    max_iter : int, default=100
        Steps of the optimizer in each descent.
    time_limit : float, optional
        Seconds after which the search stops and the best model so far is fitted. With a
        Gaussian kernel a default SVC or SVR is trained first. It is the model unless
        the search has found a better one by then.
    n_jobs : int, optional
        Number of threads; -1 for one per processor. They divide the searches, if
        classes do not share hyperparameters or several starts are given, and within a
        search the splits and the rows of the Gram matrix. The result does not depend on
        it. `joblib.parallel_config` may send searches elsewhere.
    verbose : int, default=0
        1 shows a live line on a terminal or in a notebook, and elsewhere prints a line
        for every evaluation to standard error; 2 always prints these lines.
    callback : callable, optional
        Called with a `bisvm.search.history.Progress` after every evaluation. The search
        stops if it returns True.
    checkpoint : str or path, optional
        SQLite file that stores every evaluation. If a fit was killed, call it again
        with the same data and arguments: it resumes, with the same result. The callback
        is called again for the stored evaluations, and the time already spent counts
        towards `time_limit`. Needs a number as `random_state`.
    random_state : int, RandomState or None, default=None
        Seed of the splits and of random starts."""

KERNEL_PARAMETERS = """\
kernel : str or Kernel, default="auto"
        "auto" tries candidates from simple to rich, and takes a richer one only if the
        held-out loss falls by more than its noise: linear, one gamma, one gamma per
        feature, a Laplacian kernel in place of the Gaussian one, one kernel per group
        of features (columns of one order of magnitude).
        `print(model.kernel_choice_)` says what it chose and why. Others: "rbf" (one
        gamma), "ard" (one per feature), "linear", "poly", "laplacian", "matern32",
        "matern52", "chi2", "additive_chi2", "mkl" (a weight for each of several kinds)
        and "precomputed" (X holds k(x_i, x_j)). Kernel objects combine:
        `RBF().on(["age", "bmi"]) + Linear()`, `k1 * k2`, `RBF() @ Convolution2D(...)`.
    approximation : {"auto", "none", "nystroem"}, default="auto"
        "none" trains on the whole Gram matrix, n^2 numbers, "nystroem" on the kernel
        with a few hundred landmark rows. "auto" uses all rows up to 8000 (16,000 with
        many classes), if the Gram matrix fits, and searches on landmarks where a tenth
        of the rows is enough. Smooth losses only.
    max_memory : float, optional
        Bytes that a fit may take for what grows with the rows: Gram matrices,
        landmarks, values of every fold. By default a quarter of the free memory.
        Working memory of fixed size, at most 100 MB, comes on top. With a number the
        model is the same on every computer. Without one, a warning and `approximation_`
        say where the free memory has changed the model. It also limits how many of
        `n_jobs` searches run at a time (on a Dask cluster, it is for each)."""

# Data that do not fit in memory, for estimators with a kernel.
LARGE_DATA = """\
Data that do not fit in memory are given as `bisvm.Chunks`, as a memory-mapped array
    or as a Dask array. Machines then have landmarks, the search is done on a sample of
    20,000 rows in memory, and a few evaluations on all rows follow."""

_C = """\
C : "scale", float or array, default="scale"
        Start of C, or its value if `learn` leaves it out. C multiplies the summed loss,
        1/2 |f|^2 + C sum_i s_i loss(u_i), as in scikit-learn. "scale" is 1 for kernels
        with k(x, x) = 1, 1 / (n_features variance) for a linear machine, and 1 / the
        variance in the kernel's own space for others, each divided by the mean sample
        weight: neither the unit of X nor that of the weights matters. It is 1 with
        criterion="structural_risk", which does not learn C."""
_REGULARIZATION = """\
regularization : {"shared", "per_feature", "per_group"} or Regularization, \
default="shared"
        "shared": one C. "per_feature": one C per feature of a linear machine.
        "per_group": one C per group of `fit(X, y, sample_groups=...)`; samples of a
        group with a small C count little. These C may differ without a significance
        test, because the groups are given explicitly; the prior pulls them together
        with 0.3 of its strength."""
_FIT_INTERCEPT = """\
fit_intercept : {True, "penalized", False}, default=True
        "penalized" treats the intercept as the weight of a constant feature."""
_LEARN = """\
learn : "all", None, or names such as "C" or ("C", "gamma"), default="all"
        Hyperparameters that are learned. Learning starts from C and the arguments of
        the kernel; what is not learned stays there. "gamma" also means "k1__gamma" and
        "k2__gamma"."""
_PRIOR = """\
prior : "auto", None or Prior, default="auto"
        Pulls the entries of a vector of hyperparameters together. "auto" is
        `criteria.priors.Shrinkage(0.1)`, weakened where held-out points gain by it."""
_OPTIMIZER = """\
optimizer : str or Optimizer, default="auto"
        "auto" is BFGS; with the exact hinge it is a scan for one hyperparameter and a
        simplex (Nelder and Mead) for two to five shared ones.
        Others: "bfgs", "lbfgs", "scan", "grid", and those of `bisvm.published`:
        "rprop", "gradient", "nesterov", "armijo", "spg", "bundle",
        "variable-metric-bundle", and for one C of a linear machine with the hinge on
        both levels and no free intercept "fold-newton", "sgd-dcd" and "bilevel-sgd",
        which ignore max_iter, time_limit and callback."""
_SOLVER = """\
solver : str or Solver, default="auto"
        Solver of the lower level: "newton", "newton-cg" or "fista"; for the exact hinge
        "smo" (LIBSVM), "dcd" (without a free intercept), "pegasos" or "sharpening".
        "auto" chooses by loss and machine."""
_STARTS = """\
starts : "auto", int or list of dicts, default="auto"
        "auto" starts from one common value per vector of hyperparameters, and lets its
        entries differ only if this lowers the held-out losses by more than their noise.
        1 starts from the given arguments alone. A larger number adds starts: first the
        widths at which local averages of the labels predict best, then random ones."""
_ENSEMBLE = """\
ensemble : bool or int, default=False
        Number of machines (True: five) that are tuned on different splits, `n_jobs` at
        a time; the decision function is their mean. `time_limit` is for all of them,
        and `checkpoint` has a file for each."""

_LOO = """"loo" approximates leave-one-out by one machine that is trained on all rows.
        The decision value of each row is corrected, to second order, for the effect of
        training on that row (docs/methods/leave_one_out.md)."""

PARAMETERS = f"""\
{_C}
    {_REGULARIZATION}
    loss : {{"quartic", "modified_log", "squared_hinge", "logistic", "hinge"}} or Loss,
    \
default="quartic"
        Loss of the lower level. "quartic" is the hinge with a rounded corner of
        half-width 0.5; `losses.Quartic(eps)` has another one. With the
        exact "hinge" H is piecewise smooth; its gradient is that of the current piece,
        through the vectors on the margin.
    criterion : str or Criterion, default="auto"
        Loss of the upper level, on held-out points: "blend", "calibrated_logistic",
        "calibrated_mse", "mse", "squared_hinge", "hinge", "logistic", "smoothed_error",
        "f1", "auc" or "multinomial". "auto" is the calibrated logistic loss, and
        "blend", which adds half the calibrated squared error, where the entries of a
        vector of hyperparameters differ. "multinomial" compares all classes of a row
        with each other, where the others are means over class tasks. "balanced_" before
        a name gives all classes the same weight;
        `criteria.Weighted("blend", {{"sick": 10}})` says what errors cost. "auc" only
        sees the order of decision values: give it a `threshold`. "structural_risk"
        holds no points out: it is the optimum of the training problem plus a
        regulariser on the kernel, at the given C.
    cv : int, "loo", splitter or list of (train, validation) index pairs, default=5
        An int means stratified, shuffled folds, which keep `groups` together and spread
        `sample_groups`. A class with a single member is always trained on, and never
        held out. Splits are drawn once per fit. {_LOO} `SwapHoldout()` exchanges
        training and held-out points during the search.
    {_FIT_INTERCEPT}
    {_LEARN}
    {_PRIOR}
    {_OPTIMIZER}
    {_SOLVER}
    {_STARTS}
    multi_class : {{"auto", "ovr", "ovo"}}, default="auto"
        "ovr" has a machine for every class against the rest, "ovo" one for every pair
        of classes. "auto" keeps the one with the lower log-loss on held-out rows; with
        more than eleven classes it is "ovr". `print(model.multi_class_choice_)` says
        why.
    shared : bool, default=True
        Whether all classes have the same hyperparameters.
    class_weight : None, "balanced", dict or "learn", default=None
        Factors of the sample weights, in training and validation. "learn" gives every
        class its own C in training, and does not change validation: the search still
        lowers the mean loss over samples, not the error of a rare class. For that, use
        criterion="balanced_blend" as well.
    threshold : None, "accuracy", "balanced_accuracy", "f1", ("f1", class) or dict
        Two classes only: after tuning, decision values are shifted so that zero is the
        best threshold for this goal on the held-out points. A dict from class to number
        gives the cost of an error on a member of the class. F1 is that of
        `classes_[1]`, or of the class that is named.
    {_ENSEMBLE}
    {LIMITS}"""

REGRESSION_PARAMETERS = f"""\
{_C}
    epsilon : "scale" or float, default="scale"
        Start of epsilon, in units of y, or its value if `learn` leaves it out:
        half-width of the tube in which residuals cost nothing, or of the rounded part
        of other losses. "scale" is a tenth of the standard deviation of y.
    {_REGULARIZATION}
    loss : {{"auto", "epsilon_insensitive", "smooth_epsilon_insensitive", \
"squared_epsilon_insensitive", "squared", "huber", "pinball"}} or ResidualLoss, \
default="auto"
        Loss of the lower level, a function of the residual. "epsilon_insensitive" is
        that of scikit-learn's SVR, "smooth_epsilon_insensitive" the same with rounded
        corners, which is many times as fast to tune. "auto" is "huber", or "pinball"
        for a quantile.
    quantile : float, optional
        Between 0 and 1: predict this quantile of y instead of its mean, by the pinball
        loss on both levels.
    criterion : str or Criterion, default="auto"
        Loss of the upper level, on held-out residuals in units of the standard
        deviation of y: "mse", "mae", "huber", "pinball", or a likelihood with fitted
        scale, "gaussian" or "student". "auto" is "mae", "mse" for y of at most ten
        different values, and "pinball" for a quantile.
        "structural_risk" holds no points out, as for classes.
    cv : int, "loo", splitter or list of (train, validation) index pairs, default=5
        An int means shuffled folds, which keep `groups` together and spread
        `sample_groups`. Splits are drawn once per fit. {_LOO}
    {_FIT_INTERCEPT}
    {_LEARN}
    prior : "auto", None or Prior, default="auto"
        Pulls the entries of a vector of hyperparameters together. "auto" is
        `criteria.priors.Shrinkage(0.01)`, weakened where held-out points gain by it.
    {_OPTIMIZER}
    {_SOLVER}
    {_STARTS}
    shared : bool, default=True
        Whether all outputs have the same hyperparameters.
    {_ENSEMBLE}
    {LIMITS}"""

# What a search leaves in all estimators.
_MACHINE = """\
group_names_, group_weights_ : array of labels, and dict from label to C
        Of the groups (or classes) that have their own C; None without such groups.
    kernel_ : Kernel
        The kernel at the learned values.
    relevance_ : array of shape (n_features,)
        Share of every feature in the mean squared slope of the decision function; None
        for a precomputed kernel."""
_RECORD = """\
certificate_ : `bisvm.search.history.Certificate`
        How close to optimal both levels are, and why the search stopped.
    history_ : list of `bisvm.search.history.Record`
        One for every evaluation.
    coordinates_ : list of (name, "log" or "linear")
        What theta is in these records.
    n_svm_evaluations_ : int
        Lower-level problems solved, for all evaluations, kernels and checks.
    result_ : OptimizeResult
        Of the descent that was chosen."""
# Further attributes of estimators with a kernel.
KERNEL_ATTRIBUTES = """\
gamma_ : float or array of shape (n_features,)
        gamma of the kernel in units of X, as scikit-learn's SVC takes it: large where
        the kernel is narrow. An array if every feature has its own; with
        kernel="auto" also for one common gamma, which is relative to the spread of
        each feature. With shared=False the first axis is the class or output. Only
        kernels with a gamma have it: `hasattr(model, "gamma_")` is False for a linear
        one, and for several parts the names are in `hyperparameters_`.
    kernel_choice_ : `bisvm.search.kernel_choice.KernelChoice`, or None
        What kernel="auto" chose, and why.
    approximation_ : `bisvm.machines.landmarks.LeftOut`, or None
        The number of landmarks, what they leave out of the kernel, and whether memory
        has limited their number (`approximation_.limited`).
    support_, support_vectors_, n_support_, dual_coef_, intercept_ : as in scikit-learn
        Not for linear kernels; an ensemble has those of its members."""

ATTRIBUTES = f"""\
C_ : float or array
        C of the final machine.
    hyperparameters_ : dict
        All hyperparameters, in natural units.
    {_MACHINE} It does not measure how much predictions need a
        feature; `importance(X, y)` does.
    feature_scale_ : array of shape (n_features,), or None
        Standard deviations of the features: gamma times their squares is in
        standardised units.
    criterion_value_ : float
        H without the prior: mean validation loss over the folds at the optimum, or the
        structural risk with its regulariser.
    expected_score_ : `bisvm.estimators.expected_score.ExpectedScore`, or None
        Accuracy to expect on new data, `expected_score_.value`, and its 90% interval,
        `expected_score_.interval()`, or `interval(n_new=200)` for the score on 200
        rows. None without held-out points, and for pairs of classes tuned separately.
    generalization_gap_ : float, or None
        By how much the held-out accuracy is too high, because the hyperparameters were
        chosen by it. `expected_score_` is lower by this.
    quality_ : `bisvm.estimators.quality.Quality`, or None
        Recall and precision of every class, balanced accuracy, AUC and calibration on
        the held-out rows of the search. If predictions are no better than guessing,
        `print(model.quality_)` begins with that. None without held-out points.
    calibration_ : `bisvm.search.calibration.Calibration`, or None
        Turns decision values into probabilities. None without held-out points.
    threshold_ : float
        The threshold, which has been subtracted from decision values and `intercept_`;
        `best_threshold(goal)` returns the threshold for another goal.
    {_RECORD}
    multi_class_ : "ovr" or "ovo"
        What was chosen, or given.
    multi_class_choice_ : `bisvm.search.task_choice.TaskChoice`, or None
        What multi_class="auto" chose, and why.
    estimators_ : None, or list
        Members of an ensemble; the first is the machine of ensemble=False if
        `random_state` is a number. Means over the members: `relevance_`,
        `criterion_value_`, `threshold_`, `calibration_`, `expected_score_`, the gap,
        and, if all are linear, `coef_` and `intercept_`. `n_svm_evaluations_` is the
        sum, `certificate_` a list. Other attributes are those of the first member.
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn
    class_weight_, shape_fit_, fit_status_ : as in scikit-learn's SVC
        Factors of the weights of the classes, shape of the rows of positive weight, and
        0 if the final machine has converged, else 1."""


REGRESSION_ATTRIBUTES = f"""\
C_, epsilon_ : float or array
        Of the final machine, in units of y, as scikit-learn's `SVR` takes them. For
        several outputs, in units of their standard deviations. epsilon_ is None for a
        loss without one.
    hyperparameters_ : dict
        All hyperparameters, in natural units.
    criterion_value_ : float
        H without the prior: mean validation loss over the folds at the optimum, for y
        in units of its standard deviation.
    expected_score_ : `bisvm.estimators.expected_fit.ExpectedFit`, or None
        R^2 and RMSE to expect on new data, `expected_score_.value` and
        `expected_score_.rmse`, with their 90% intervals, `interval()` and
        `rmse_interval()`. None without held-out points.
    generalization_gap_ : float, or None
        By how much the held-out R^2 is too high, because the hyperparameters were
        chosen by it. `expected_score_` is lower by this.
    quality_ : `bisvm.estimators.number_quality.NumberQuality`, or None
        R^2 with its interval, RMSE and mean absolute error in cross-validation. None
        without held-out points, and for several outputs.
    {_MACHINE}
    {_RECORD}
    estimators_ : None, or list
        Members of an ensemble, whose prediction is their mean; the first is the machine
        of ensemble=False if `random_state` is a number.
    n_features_in_, feature_names_in_ : as in scikit-learn"""
