"""A report on a table whose names would do harm if they were anything but text."""

import numpy as np
import pandas as pd
import pytest

from bisvm.cli import main
from bisvm.datasets import make_moons_with_noise

SCRIPT = "<script>alert(1)</script>"
QUOTES = "a\"b' onmouseover=alert(2) x="
LABEL = "</td></table><script>alert(3)</script>"
PICTURE = "<img src=x onerror=alert(4)>"


def harmful_table():
    X, y = make_moons_with_noise(240, n_noise=2, random_state=0)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=[SCRIPT, "höhe $x_1$", QUOTES, "{escape} %s"])
    frame["colour"] = rng.choice(["red", "\u202egreen", *[PICTURE] * 3], 240)
    frame["</script><script>alert(5)</script>"] = 1.0
    for number in range(10):
        frame[f"column {number}"] = rng.normal(size=240).round(3)
    for number in range(5):
        frame[f"constant {number}"] = 1.0
    frame.loc[:5, "column 1"] = np.nan
    frame["day"] = np.datetime64("2020-01-01") + rng.integers(0, 300, 240)
    frame["target"] = np.where(y == 1, LABEL, "fine")
    return frame


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    """Folder with the table, the model and the report, by `bisvm tune`."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("skops")
    folder = tmp_path_factory.mktemp("report")
    harmful_table().to_csv(folder / "harm & co.csv", index=False)
    words = ["tune", str(folder / "harm & co.csv"), "--target", "target"]
    files = ["--report", str(folder / "out.html"), "--save", str(folder / "out.skops")]
    assert main([*words, "--kernel", "ard", "--cv", "3", "--details", *files]) == 0
    return folder
