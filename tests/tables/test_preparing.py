"""What `pipeline_for` leaves out."""

import warnings

import pandas as pd
import pytest

from bisvm import BilevelSVC
from bisvm.tables import pipeline_for


def frame(spend):
    names = [f"C{1000 + k}" for k in range(40)]
    return pd.DataFrame({"customer": names, "spend": spend, "age": range(20, 60)})


def test_text_that_looks_like_numbers_is_not_left_out_silently():
    spend = [f"{10 + k},5 €" for k in range(40)]
    with pytest.warns(UserWarning, match=r"'spend' is not used.*read_table"):
        pipeline_for(frame(spend), BilevelSVC(), keep=["age"])


def test_names_of_rows_and_columns_that_are_dropped_on_request_are_no_surprise():
    spend = [f"{10 + k},5 €" for k in range(40)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline_for(frame(spend), BilevelSVC(), drop=["spend"], keep=["age"])
        pipeline_for(frame(range(10, 50)), BilevelSVC(), keep=["spend", "age"])
