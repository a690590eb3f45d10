"""Configuration of the site: ``sphinx-build -W docs docs/_build``.

The build uses no network. ``DOCS_INTERSPHINX=1`` fetches the inventories of JAX, NumPy
and flax, and links their names.
"""

import ast
import functools
import inspect
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import jax_stateful_rng  # noqa: E402 (of this checkout)

project = "jax_stateful_rng"
author = "The jax_stateful_rng authors"
project_copyright = author
version = release = jax_stateful_rng.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "notebooks/.ipynb_checkpoints"]
default_role = "py:obj"  # what docstrings have in single backticks
highlight_language = "python"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the notebooks are committed with their output

autodoc_typehints = "none"  # source_signature gives them
autodoc_member_order = "bysource"
autosummary_generate = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_attr_annotations = False
python_maximum_signature_line_length = 80

intersphinx_mapping = {}
if os.environ.get("DOCS_INTERSPHINX"):
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "jax": ("https://docs.jax.dev/en/latest", None),
        "flax": ("https://flax.readthedocs.io/en/latest", None),
    }

html_theme = "furo"
html_title = f"jax_stateful_rng {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
copybutton_exclude = ".linenos, .gp, .go"


# --- Signatures ----------------------------------------------------------------------


def source_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, *found: str | None
) -> tuple[str, str] | None:
    """Returns a signature as it is written: types by their short names.

    Evaluated, ``RealLike`` alone would be a union of four lines.
    """
    if what not in ("function", "method"):
        return None
    node = ast.parse(textwrap.dedent(inspect.getsource(obj))).body[0]
    if what == "method":
        del node.args.args[0]
    return f"({ast.unparse(node.args)})", ast.unparse(node.returns).strip("'")


# --- Methods by family ---------------------------------------------------------------


_PROPERTIES = (property, functools.cached_property)


class Family(SphinxDirective):
    """Lists the public methods that one base class gives to ``StatefulPRNG``.

    So a new law comes onto its page by itself, and shows under the name by which it is
    called. The argument is the base class's name, or ``StatefulPRNG`` for its own.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Returns a table of the methods, and then each of them."""
        generator = jax_stateful_rng.StatefulPRNG
        (owner,) = (
            base for base in generator.__mro__ if base.__name__ == self.arguments[0]
        )
        names = [
            name
            for name, value in vars(owner).items()
            if not name.startswith("_")
            and (inspect.isfunction(value) or isinstance(value, _PROPERTIES))
        ]
        kinds = {
            name: "autoproperty"
            if isinstance(vars(owner)[name], _PROPERTIES)
            else "automethod"
            for name in names
        }
        lines = ["```{eval-rst}", ".. currentmodule:: jax_stateful_rng", ""]
        lines += [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   ~StatefulPRNG.{name}" for name in names]
        lines += [""]
        for name in names:
            lines += [f".. {kinds[name]}:: StatefulPRNG.{name}", ""]
        lines += ["```"]
        holder = nodes.section()
        holder.document = self.state.document
        self.state.nested_parse(StringList(lines, str(__file__)), 0, holder)
        return holder.children


# --- Formulas, without scripts and without a network ---------------------------------


# What docutils does not know, and what it has in its place.
_COMMANDS = {r"\dots": r"\ldots", r"\Big/": r"\Bigl/"}


def mathml(node: nodes.math | nodes.math_block, *, as_block: bool) -> str:
    """Returns the formula of a node as MathML, which browsers know."""
    tex = node.astext()
    for unknown, known in _COMMANDS.items():
        tex = tex.replace(unknown, known)
    return tex2mathml(tex, as_block=as_block)


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Writes a formula in a line of text."""
    self.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_displaymath(self: HTML5Translator, node: nodes.math_block) -> None:
    """Writes a formula in lines of its own."""
    formula = mathml(node, as_block=True)
    self.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Adds what stands above."""
    app.connect("autodoc-process-signature", source_signature)
    app.add_directive("family", Family)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
