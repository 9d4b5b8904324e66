"""Optional packages: their module, or what to install."""

import json
import sys

import pytest

from bisvm.core.optional import optional_module


def test_a_module_that_is_there():
    assert optional_module("json", "Files", "json") is json


def test_a_missing_one_is_named_with_what_needs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError) as raised:
        optional_module("cv2", "Images", "opencv")
    assert str(raised.value) == (
        "Images need opencv, which is not installed: pip install opencv"
    )
