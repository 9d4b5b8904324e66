"""Groups of features by order of magnitude."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from bisvm.datasets import load
from bisvm.kernels import RBF, Sum, feature_groups, on_groups

RNG = np.random.default_rng(0)
SIZES = np.array([200.0, 0.03, 3.0, 500.0, 5.0, 0.04, 0.00002])
X = SIZES * RNG.uniform(0.9, 1.1, size=(50, 7)) * RNG.choice([-1, 1], size=(50, 7))
GROUPS = [[0, 3], [2, 4], [1, 5], [6]]


def plain(groups):
    return [[int(d) for d in group] for group in groups]


def test_columns_of_one_order_of_magnitude_are_together_largest_first():
    found = feature_groups(X)
    assert plain(found) == GROUPS
    assert all(np.issubdtype(group.dtype, np.integer) for group in found)


def test_every_column_is_in_one_group():
    many = RNG.normal(size=(30, 40)) * 10.0 ** RNG.uniform(-6, 6, size=40)
    groups = feature_groups(many)
    assert sorted(np.concatenate(groups)) == list(range(40))


def test_every_group_can_have_a_kernel_of_its_own():
    kernel = Sum([RBF().on(group) for group in feature_groups(X)])
    names = [parameter.name for parameter in kernel.parameters(X)]
    assert names[1:] == ["k1__gamma", "k2__gamma", "k3__gamma", "k4__gamma"]


def test_names_come_back_for_a_data_frame():
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    assert feature_groups(frame) == [["a", "d"], ["c", "e"], ["b", "f"], ["g"]]
    assert plain(feature_groups(pd.DataFrame(X))) == GROUPS


def test_sparse_and_mostly_empty_columns_have_the_size_of_their_entries():
    thin = np.where(RNG.random(X.shape) < 0.3, X, 0.0)
    assert plain(feature_groups(thin)) == GROUPS
    assert plain(feature_groups(sparse.csr_array(thin))) == GROUPS


def test_columns_of_zeros_are_in_the_last_group():
    padded = np.column_stack([np.zeros(50), X])
    assert plain(feature_groups(padded))[-1] == [0, 7]
    assert plain(feature_groups(np.zeros((5, 3)))) == [[0, 1, 2]]


def test_outliers_do_not_move_a_column():
    wild = X.copy()
    wild[::10] *= 1e6
    assert plain(feature_groups(wild)) == GROUPS


def test_powers_of_ten_belong_to_their_own_order():
    assert plain(feature_groups(np.full((3, 2), [1000.0, 5000.0]))) == [[0, 1]]
    assert plain(feature_groups(np.full((3, 2), [0.001, 0.005]))) == [[0, 1]]


def test_standardised_columns_are_one_group():
    standard = RNG.normal(size=(100, 5))
    assert len(feature_groups(standard)) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"X": X[0]}, "two dimensions"),
        ({"X": np.where(X == X[3, 2], np.nan, X)}, "Column 2 of X has missing"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        feature_groups(**arguments)


@pytest.mark.skipif(
    not (Path(os.environ.get("BISVM_DATA", "")) / "parkinsons.npz").is_file(),
    reason="needs the archive parkinsons.npz in BISVM_DATA",
)
def test_voice_measurements_fall_into_the_seven_kinds_of_the_thesis():
    """Klatzer (2014), section 5.3.2, makes seven groups of similar magnitude."""
    X, _ = load("parkinsons", return_X_y=True)
    assert plain(feature_groups(X)) == [
        [0, 1, 2],  # fundamental frequencies, Hz
        [15],  # harmonics to noise, dB
        [18, 20],  # spread 1 and the correlation dimension D2
        [9, 16, 17, 19, 21],  # shimmer in dB, RPDE, DFA, spread 2, PPE
        [8, 10, 11, 12, 13, 14],  # shimmer and noise to harmonics
        [3, 5, 6, 7],  # relative jitter
        [4],  # absolute jitter, s
    ]


def test_one_kernel_for_every_group():
    X = np.random.default_rng(0).normal(size=(8, 3))
    kernel = on_groups([[0, 2], [1]], RBF(0.5))
    expected = RBF(0.5)(X[:, [0, 2]]) + RBF(0.5)(X[:, [1]])
    np.testing.assert_allclose(kernel(X), expected)
    assert on_groups([["a"], ["b", "c"]]).bind(["a", "b", "c"])(X).shape == (8, 8)


def test_groups_must_not_overlap():
    with pytest.raises(ValueError, match="Column 2 is in the groups 0 and 1"):
        on_groups([[0, 2], [2, 1]])
