"""How the documentation is built: `make docs`, every warning an error, no network."""

import sys
from pathlib import Path

import bisvm

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "bisvm"
author = "The bisvm developers"
copyright = author
release = version = bisvm.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "mathml",
    "plain_docstrings",
]
exclude_patterns = ["_build", "_ext", "gallery/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "code"

html_theme = "furo"
html_title = f"bisvm {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    # All of them are run but the one that starts processes of its own.
    "filename_pattern": r"/(?!cluster)\w+\.py$",
    "within_subsection_order": "gallery_order.ByPlace",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "default_thumb_file": str(HERE / "images" / "text.png"),
    "download_all_examples": False,
    "plot_gallery": True,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib",),
    "nested_sections": False,
    "promote_jupyter_magic": False,
    "show_signature": False,
}

# Classes of `bisvm` itself have their page there, and no second one.
autosummary_context = {"at_top": bisvm.__all__}
