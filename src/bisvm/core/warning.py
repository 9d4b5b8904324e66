"""Warnings that point at the user's line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings

# Packages between a user's call and ours: scikit-learn's decorators of `fit`, and the
# import system if a warning arises while a module is imported.
OURS = ("bisvm", "sklearn", "importlib")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the first caller outside of this library."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals):
        # Python leaves its import system out when it counts frames.
        level += not _is_importlib(frame.f_code.co_filename)
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_ours(namespace: dict[str, object]) -> bool:
    return str(namespace.get("__name__", "")).partition(".")[0] in OURS


def _is_importlib(filename: str) -> bool:
    return "importlib" in filename and "_bootstrap" in filename
