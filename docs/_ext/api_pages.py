"""The API reference: a page of all public modules, written from what the package says.

Whatever is in `bisvm.__all__`, or in the `__all__` of a public module, is there.
"""

from pathlib import Path

import bisvm

HEAD = """\
API reference
=============

Estimators, and what is done with them, are in ``bisvm`` itself. The parts that they
are made of have modules of their own.

.. autosummary::
   :toctree:

"""


def write_index(app, config):
    folder = Path(app.srcdir, "api")
    folder.mkdir(exist_ok=True)
    names = ["bisvm", *(f"bisvm.{name}" for name in bisvm._MODULES)]
    text = HEAD + "".join(f"   {name}\n" for name in names)
    page = folder / "index.rst"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def foreign(app, what, name, member, skip, options):
    """Methods that scikit-learn wrote are documented there."""
    home = getattr(member, "__module__", None) or ""
    return True if home.startswith(("sklearn", "numpy", "scipy")) else None


def setup(app):
    app.connect("config-inited", write_index)
    app.connect("autodoc-skip-member", foreign)
    return {"parallel_read_safe": True}
