"""What all tests share."""

import pytest

from bisvm.search import default_machine, observer


@pytest.fixture(autouse=True, scope="session")
def patience():
    """However slow the computer is, a search without time ends its first evaluation.

    It may have to compile. Tests of what happens otherwise set `GRACE` themselves.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (observer, default_machine):
            patch.setattr(module, "GRACE", 600.0)
        yield
