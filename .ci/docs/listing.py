"""Pages of highlighted source, with an anchor for each line: `source/craftax_nb/offline/awr.py.html#L12`."""

import html
import re
from pathlib import Path

from books import ROOT, Book
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

EXTRA = "_extra"  # the folder that Sphinx copies as it is
TEMPLATE = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="{up}_static/pygments.css"><link rel="stylesheet" href="{up}_static/site.css">
</head><body class="listing"><p><a href="{up}index.html">craftax_nb</a> · {where}{title}</p>
{body}
</body></html>
"""


def page(path: Path) -> str:
    "Where a file of the project is, relative to the site's root: a notebook as it is, other files as listings"
    name = str(path.relative_to(ROOT))
    return name if path.suffix == ".ipynb" else f"source/{name}.html"


def html_of(path: Path, books: list[Book]) -> str:
    "The listing of one file"
    name = str(path.relative_to(ROOT))
    book = next((b for b in books if path == b.module), None)
    up = "../" * len(Path(page(path)).parent.parts)
    where = f'<a href="{up}{book.page}.html">{html.escape(book.title)}</a> · ' if book else ""
    return TEMPLATE.format(title=html.escape(name), up=up, where=where, body=coloured(path.read_text(), path.name))


def coloured(source: str, name: str) -> str:
    "Source in colours, each line numbered and with an anchor such as L12"
    try:
        lexer = get_lexer_for_filename(name)
    except ClassNotFound:
        lexer = TextLexer()
    marked = highlight(source, lexer, HtmlFormatter(linenos="inline", anchorlinenos=True, lineanchors="L"))
    return re.sub(r'(id="|name="|href="#)L-(\d+")', r"\1L\2", marked)
