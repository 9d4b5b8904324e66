"""`load` from each of its three sources, and what it says when there is nothing."""

import ast
import os
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
from scipy import sparse
from sklearn.utils import Bunch

import bisvm.datasets
from bisvm.datasets import available, load
from bisvm.datasets.catalogue import ALIASES, ARCHIVES, BUNDLED, NAMES, OPENML

DATA = os.environ.get("BISVM_DATA")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Let every use of OpenML fail, as it does without a network."""

    def fetch_openml(**_):
        raise URLError("no network in tests")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)


@pytest.fixture
def no_directory(monkeypatch):
    monkeypatch.delenv("BISVM_DATA", raising=False)


@pytest.fixture
def directory(monkeypatch, tmp_path):
    """A data directory with nothing in it yet."""
    monkeypatch.setenv("BISVM_DATA", str(tmp_path))
    return tmp_path


def csr_fields(matrix, prefix=""):
    fields = ("data", "indices", "indptr", "shape")
    return {prefix + field: np.asarray(getattr(matrix, field)) for field in fields}


# scikit-learn --------------------------------------------------------------------


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets(name, no_directory):
    data = load(name)
    bunch = getattr(sklearn.datasets, f"load_{name}")()
    np.testing.assert_array_equal(data.X, bunch.data)
    np.testing.assert_array_equal(data.y, bunch.target)
    assert data.feature_names == list(bunch.feature_names)
    assert data.target_names == [str(target) for target in bunch.target_names]
    assert data.source == "scikit-learn"
    assert data.X_test is data.y_test is data.splits is data.groups is None


def test_return_X_y(no_directory):
    X, y = load("iris", return_X_y=True)
    assert X.shape == (150, 4)
    assert y.shape == (150,)


def test_record_is_frozen_and_says_what_it_is(no_directory):
    data = load("iris")
    assert repr(data) == "Dataset('iris': 150 x 4, 3 classes; from scikit-learn)"
    with pytest.raises(AttributeError):
        data.y = None
    with pytest.raises(TypeError):
        data.details["extra"] = None


# archives ------------------------------------------------------------------------


def test_dense_archive_with_all_its_parts(directory):
    X, y = np.arange(12.0).reshape(6, 2), np.array([-1, 1] * 3)
    np.savez(
        directory / "ida_heart.npz",
        X=X,
        y=y,
        X_test=X[:2] + 1,
        y_test=y[:2],
        train_idx=np.array([[0, 1, 2], [3, 4, 5]], dtype=np.int32),
        test_idx=np.array([[3, 4, 5], [0, 1, 2]], dtype=np.int32),
        subject=np.array([1, 1, 2, 2, 3, 3]),
        feature_names=np.array(["age", "sex"]),
        class_names=np.array(["healthy", "ill"]),
        batch=np.zeros(6),
    )
    data = load("ida_heart")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.X_test, X[:2] + 1)
    np.testing.assert_array_equal(data.y_test, y[:2])
    np.testing.assert_array_equal(
        data.splits, [[[0, 1, 2], [3, 4, 5]], [[3, 4, 5], [0, 1, 2]]]
    )
    np.testing.assert_array_equal(data.groups, [1, 1, 2, 2, 3, 3])
    assert data.feature_names == ["age", "sex"]
    assert data.target_names == ["healthy", "ill"]
    assert list(data.details) == ["batch"]
    assert data.source == str(directory / "ida_heart.npz")
    assert "6 x 2, 2 classes, 2 test, 2 splits" in repr(data)


def test_numbered_folds_become_splits(directory):
    fold = np.array([2, 0, 1, 0, 2])
    np.savez(directory / "folds_cancer.npz", X=np.ones((5, 1)), y=fold, fold=fold)
    splits = load("folds_cancer").splits
    assert len(splits) == 3
    for k, (train, test) in enumerate(splits):
        assert np.all(fold[test] == k)
        np.testing.assert_array_equal(np.union1d(train, test), np.arange(5))


def test_sparse_archive(directory):
    train = sparse.random(7, 5, density=0.4, format="csr", random_state=0)
    test = sparse.random(3, 5, density=0.4, format="csr", random_state=1)
    fields = csr_fields(train) | csr_fields(test, "test_")
    np.savez(directory / "a9a.npz", **fields, y=np.ones(7), y_test=np.ones(3))
    data = load("a9a")
    assert data.X.format == data.X_test.format == "csr"
    np.testing.assert_array_equal(data.X.toarray(), train.toarray())
    np.testing.assert_array_equal(data.X_test.toarray(), test.toarray())
    assert dict(data.details) == {}


def test_images_keep_their_shape(directory):
    images = np.zeros((4, 8, 8, 3), dtype=np.uint8)
    np.savez(directory / "caltech101_subset.npz", X=images, y=np.arange(4))
    X, _ = load("caltech101", return_X_y=True)
    assert X.shape == (4, 8, 8, 3)
    assert X.dtype == np.uint8


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("heart", "heart_statlog"),
        ("banana", "ida_banana"),
        ("breast-cancer-ljubljana", "ida_breast_cancer"),
        ("GunPoint", "ucr_GunPoint"),
        ("connect-4", "connect4"),
        ("IDA_Splice", "ida_splice"),
    ],
)
def test_usual_ways_of_writing_a_name(directory, asked, stored):
    np.savez(directory / f"{stored}.npz", X=np.ones((2, 1)), y=np.arange(2))
    assert load(asked).name == stored


def test_archives_of_ones_own(directory):
    np.savez(directory / "my_data.npz", X=np.ones((2, 3)), y=np.arange(2))
    assert load("my_data").X.shape == (2, 3)
    assert available()["my_data"] == str(directory / "my_data.npz")


def test_archive_comes_before_openml_and_after_scikit_learn(directory):
    for name in ("iris", "seeds"):
        np.savez(directory / f"{name}.npz", X=np.ones((2, 1)), y=np.arange(2))
    assert load("iris").source == "scikit-learn"
    assert load("seeds").source == str(directory / "seeds.npz")


def test_archive_that_is_no_data_set(directory):
    np.savez(directory / "seeds.npz", Z=np.ones(3))
    with pytest.raises(ValueError, match=r"seeds\.npz is not a data set: it holds Z"):
        load("seeds")


def test_pickled_objects_are_refused(directory):
    np.savez(directory / "seeds.npz", X=np.array([{}, {}]), y=np.arange(2))
    with pytest.raises(ValueError, match="allow_pickle"):
        load("seeds")


# OpenML --------------------------------------------------------------------------


@pytest.fixture
def openml(monkeypatch, no_directory):
    """Serve one made-up data set in place of OpenML; returns the calls received."""
    calls = []

    def serve(**fields):
        def fetch_openml(**arguments):
            calls.append(arguments)
            return Bunch(**fields)

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
        return calls

    return serve


def test_openml_strings_stay_strings(openml):
    calls = openml(
        data=np.ones((2, 13)),
        target=np.array(["absent", "present"], dtype=object),
        feature_names=[f"x{j}" for j in range(13)],
    )
    data = load("heart")
    assert calls[0]["data_id"] == 53
    assert calls[0]["as_frame"] is False
    assert data.source == "OpenML 53"
    assert list(data.y) == ["absent", "present"]
    assert len(data.feature_names) == 13


def test_openml_training_and_test_rows_are_cut_apart(openml):
    n = 3089 + 4000
    openml(
        data=sparse.csr_matrix(np.arange(4.0 * n).reshape(n, 4)),
        target=np.tile(["0", "1"], n)[:n],
        feature_names=list("abcd"),
    )
    data = load("svmguide1")
    assert isinstance(data.X, np.ndarray)
    assert data.X.shape == (3089, 4)
    assert data.X_test.shape == (4000, 4)
    assert data.X_test[0, 0] == 4 * 3089
    assert data.y.dtype == data.y_test.dtype == np.int64


def test_openml_columns_that_are_no_features_are_dropped(openml):
    openml(
        data=np.array([[7, 1.5, 2.5], [8, 3.5, 4.5]]),
        target=np.array(["g", "h"]),
        feature_names=["ID", "fLength:", "fWidth:"],
    )
    data = load("magic04")
    np.testing.assert_array_equal(data.X, [[1.5, 2.5], [3.5, 4.5]])
    assert data.feature_names == ["fLength:", "fWidth:"]


def test_openml_images_get_their_shape(openml):
    openml(
        data=np.zeros((70, 784)),
        target=np.array(["5"] * 70),
        feature_names=[f"pixel{j}" for j in range(784)],
    )
    data = load("mnist")
    assert data.X.shape == (70, 28, 28)
    assert data.X.dtype == np.uint8


def test_openml_sparse_sets_stay_sparse(openml):
    matrix = sparse.random(9, 4, density=0.5, format="csr", random_state=0)
    target = np.array([-1.0, 1.0, 1.0] * 3)
    openml(data=matrix, target=target, feature_names=list("abcd"))
    data = load("real_sim")
    assert sparse.issparse(data.X)
    np.testing.assert_array_equal(data.y, target.astype(int))


# errors and listings -------------------------------------------------------------


def test_unknown_name_lists_the_valid_ones(no_directory):
    with pytest.raises(ValueError, match="Unknown data set 'hart'") as error:
        load("hart")
    assert "Did you mean 'heart_statlog'?" in str(error.value)
    assert all(name in str(error.value) for name in NAMES)


def test_a_name_is_never_a_path(directory):
    np.savez(directory.parent / "outside.npz", X=np.ones((2, 1)), y=np.arange(2))
    with pytest.raises(ValueError, match="Unknown data set"):
        load("../outside")


def test_out_of_reach_without_a_directory(no_directory):
    with pytest.raises(FileNotFoundError) as error:
        load("parkinsons")
    message = str(error.value)
    assert "parkinsons.npz in the directory BISVM_DATA (which is not set)" in message
    assert "data set 1488 on OpenML" in message
    assert "no network in tests" in message
    assert "set BISVM_DATA" in message and "connect to the network" in message


def test_out_of_reach_with_a_directory_that_lacks_it(directory):
    with pytest.raises(FileNotFoundError) as error:
        load("bonn_eeg")
    assert f"({str(directory)!r}, where it is not)" in str(error.value)
    assert "network" not in str(error.value)


def test_out_of_reach_with_a_wrong_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("BISVM_DATA", str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError, match="which is not a directory"):
        load("bonn_eeg")


def test_available_says_where_each_would_come_from(directory):
    (directory / "seeds.npz").touch()
    origins = available()
    assert list(origins) == sorted(NAMES)
    assert origins["iris"] == "scikit-learn"
    assert origins["seeds"] == str(directory / "seeds.npz")
    assert origins["heart_statlog"] == "OpenML 53 (network)"
    assert origins["bonn_eeg"] == "out of reach (set BISVM_DATA)"


def test_aliases_lead_to_known_names():
    assert set(ALIASES.values()) <= set(NAMES)
    assert not set(ALIASES) & set(NAMES)


def test_openml_entries_are_consistent():
    ids = [entry.data_id for entry in OPENML.values()]
    assert len(ids) == len(set(ids))
    assert not set(OPENML) & set(BUNDLED)


def test_import_is_light():
    """Only NumPy and the standard library are imported before something is loaded."""
    imported = set()
    for path in Path(bisvm.datasets.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
    assert not imported & {"sklearn", "scipy", "pandas"}


# the real archives ---------------------------------------------------------------


def archive(name):
    """A real data set, or none of this test."""
    if not DATA or not (Path(DATA) / f"{name}.npz").is_file():
        pytest.skip(f"BISVM_DATA ({DATA or 'not set'}) holds no {name}.npz")
    return load(name)


@pytest.mark.parametrize("name", sorted({*ARCHIVES} - {"mnist", "caltech101_subset"}))
def test_real_archives_are_whole(name):
    data = archive(name)
    assert data.X.shape[0] == len(data.y)
    assert len(np.unique(data.y)) >= 2
    if data.X_test is not None:
        assert data.X_test.shape == (len(data.y_test), *data.X.shape[1:])
    for train, test in data.splits or []:
        assert not np.intersect1d(train, test).size
        assert len(train) + len(test) == len(data.y)


def test_published_figures():
    assert archive("heart_statlog").X.shape == (270, 13)
    assert len(archive("ida_banana").splits) == 10
    assert len(np.unique(archive("parkinsons").groups)) == 32
