"""A table is not a data frame, and says where that is."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from bisvm import BilevelSVC
from bisvm.tables import pipeline_for, read_table, reading, split_target


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("size;class\n1,5 kg;u\n2,5 kg;v\n3 kg;u\n4 kg;v\n")
    return read_table(path)


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A table whose frame is a sparse matrix."""
    monkeypatch.setattr(reading, "DENSE_ENTRIES", 10)
    X = sparse.random(30, 5, density=0.5, format="csr", random_state=0)
    dump_svmlight_file(X, np.arange(30) % 2, str(tmp_path / "t.libsvm"))
    return read_table(tmp_path / "t.libsvm")


def test_the_text_of_a_table_is_short(table, large):
    assert repr(table) == (
        f"<Table {str(table.path)!r}: 4 rows x 2 columns; .frame is a pandas DataFrame>"
    )
    assert str(table) == repr(table)
    assert repr(large).endswith("30 rows x 5 columns; .frame is a sparse matrix>")


@pytest.mark.parametrize("name", ["columns", "drop", "iloc", "size"])
def test_attributes_of_a_frame_are_found(table, name):
    said = f"'Table' object has no attribute '{name}': use .frame.{name}; .frame is a p"
    assert not hasattr(table, name)
    with pytest.raises(AttributeError, match=said):
        getattr(table, name)


def test_other_attributes_are_none(table, large):
    for own, name in ((table, "colums"), (table, "_repr_html_"), (large, "columns")):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(own, name)
    with pytest.raises(AttributeError, match="use .frame.toarray; .frame is a sparse"):
        large.toarray()


@pytest.mark.parametrize(
    "take",
    [
        lambda table: table["size"],
        lambda table: table[0],
        list,
        np.asarray,
        lambda table: "size" in table,
        lambda table: BilevelSVC().fit(table, ["u", "v", "u", "v"]),
    ],
)
def test_what_takes_cells_is_told_where_they_are(table, take):
    with pytest.raises(TypeError, match="a Table .*: use .frame, a pandas DataFrame"):
        take(table)


def test_a_table_can_be_copied_and_stored(table, large):
    rest = split_target(table, "class")[0]
    for own in (table, rest, large):
        for made in (
            copy.copy(own),
            copy.deepcopy(own),
            pickle.loads(pickle.dumps(own)),
        ):
            assert repr(made) == repr(own) and made.form == own.form
            assert made.roles == own.roles and made.is_sparse == own.is_sparse
            same = made.frame != own.frame
            assert not (same.nnz if own.is_sparse else same.any(axis=None))


def test_a_sparse_table_is_its_matrix(large):
    rest, y, *_ = split_target(large, None)
    model = pipeline_for(rest, BilevelSVC())
    assert list(model.named_steps) == ["scale", "machine"]
    with pytest.raises(TypeError, match="use .frame, a sparse matrix"):
        model.fit(rest, y)
    with pytest.raises(TypeError, match="got a sparse matrix of a Table"):
        rest.to_pandas()
