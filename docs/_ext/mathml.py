"""Formulas as MathML, which browsers draw themselves: no script, no fonts, no network.

docutils translates from LaTeX; what it does not know is a warning, and so an error.
"""

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def translated(node, block):
    try:
        return tex2mathml(node.astext(), as_block=block)
    except (MathError, SyntaxError) as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def inline(writer, node):
    writer.body.append(translated(node, block=False))
    raise SkipNode


def display(writer, node):
    writer.body.append(f'<div class="math">{translated(node, block=True)}</div>\n')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
