"""Formulas as MathML, which browsers draw themselves: no script is loaded from elsewhere."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(self, node: nodes.math) -> None:
    "A formula within a line"
    self.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block(self, node: nodes.math_block) -> None:
    "A formula on a line of its own"
    self.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app) -> dict:
    "Called by Sphinx"
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
