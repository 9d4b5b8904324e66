"""The names that `load` knows, in plain tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OpenML:
    """How one data set is stored on OpenML.

    `parts` are the sizes of the official training and test parts, in this order; rows
    after them are duplicates and are left out. `drop` names columns that are no
    features. `sparse` sets stay sparse; `nominal` features become the codes 0, 1, ...
    of their categories.
    """

    data_id: int
    parts: tuple[int, int] | None = None
    image_shape: tuple[int, ...] | None = None
    drop: tuple[str, ...] = ()
    sparse: bool = False
    nominal: bool = False


BUNDLED = ("iris", "wine", "breast_cancer", "digits")
"""Data sets that come with scikit-learn."""

ARCHIVES = (
    # Statlog, UCI and LIBSVM
    "australian breast_cancer_wisconsin_original connect4 eeg_eye_state fourclass "
    "heart_statlog ionosphere magic04 parkinsons pima_diabetes seeds svmguide1 "
    # sparse
    "a1a a9a ijcnn1 mushrooms news20_multiclass rcv1_small reuters_money_fx "
    # the benchmark of Raetsch, Onoda and Mueller (2001), with its published splits
    "ida_banana ida_breast_cancer ida_diabetis ida_heart ida_image ida_splice "
    "ida_thyroid "
    # signals and images
    "bonn_eeg caltech101_subset cifar10_airplane_automobile mnist ucr_ArrowHead "
    "ucr_BasicMotions ucr_Coffee ucr_GunPoint ucr_ItalyPowerDemand ucr_OSULeaf "
    # standardized data in published folds
    "folds_cancer folds_ionosphere folds_synbig folds_synbox folds_synsmall"
).split()
"""Data sets read from `<name>.npz` in the directory `BISVM_DATA`."""

OPENML = {
    "a9a": OpenML(1430, parts=(32561, 16281), sparse=True),
    "australian": OpenML(40981, nominal=True),
    "breast_cancer_wisconsin_original": OpenML(15),
    "cifar10": OpenML(40927),
    "connect4": OpenML(40668, nominal=True),
    "covtype": OpenML(293),
    "eeg_eye_state": OpenML(1471),
    "fashion_mnist": OpenML(40996, parts=(60000, 10000), image_shape=(28, 28)),
    "fourclass": OpenML(1435),
    "fourclass_scale": OpenML(1571),
    "german": OpenML(1436),
    "heart_statlog": OpenML(53),
    "ida_banana": OpenML(1460),
    "ida_splice": OpenML(1579),
    "ijcnn1": OpenML(1575, parts=(49990, 91701), sparse=True),
    "ionosphere": OpenML(59),
    "madelon": OpenML(1485),
    "magic04": OpenML(1120, drop=("ID",)),
    "mnist": OpenML(554, parts=(60000, 10000), image_shape=(28, 28)),
    "news20_multiclass": OpenML(1594, parts=(15935, 3993), sparse=True),
    "parkinsons": OpenML(1488),
    "pima_diabetes": OpenML(37),
    "rcv1_binary": OpenML(1577, sparse=True),
    "real_sim": OpenML(1578, sparse=True),
    "ringnorm": OpenML(1496),
    "seeds": OpenML(1499),
    "sonar": OpenML(40),
    "svmguide1": OpenML(1433, parts=(3089, 4000)),
    "twonorm": OpenML(1507),
    "w8a": OpenML(1588, parts=(49749, 14951), sparse=True),
}
"""Data sets fetched from OpenML if there is no archive.

Rows and classes are those of the archives where both exist, but row order, splits,
groups and the coding of labels may differ.
"""

ALIASES = {
    "arrowhead": "ucr_ArrowHead",
    "banana": "ida_banana",
    "basicmotions": "ucr_BasicMotions",
    "bonn": "bonn_eeg",
    "breast_cancer_ljubljana": "ida_breast_cancer",
    "breast_w": "breast_cancer_wisconsin_original",
    "caltech101": "caltech101_subset",
    "coffee": "ucr_Coffee",
    "connect_4": "connect4",
    "covertype": "covtype",
    "diabetes": "pima_diabetes",
    "diabetis": "ida_diabetis",
    "eye_state": "eeg_eye_state",
    "gunpoint": "ucr_GunPoint",
    "heart": "heart_statlog",
    "image": "ida_image",
    "italypowerdemand": "ucr_ItalyPowerDemand",
    "magic": "magic04",
    "money_fx": "reuters_money_fx",
    "mushroom": "mushrooms",
    "news20": "news20_multiclass",
    "osuleaf": "ucr_OSULeaf",
    "pima": "pima_diabetes",
    "splice": "ida_splice",
    "thyroid": "ida_thyroid",
    "wdbc": "breast_cancer",
}
"""Other names of data sets. Case, "-" and "_" do not matter."""

NAMES = tuple(dict.fromkeys((*BUNDLED, *ARCHIVES, *OPENML)))
"""Every name once."""
