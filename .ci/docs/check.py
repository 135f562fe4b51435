"""Looks at the built site: pages, pictures, links, what is loaded from elsewhere, and the search.

python .ci/docs/check.py _docs
"""

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pages import Notebook, directives, read_all, text

WORDS = {"advantage": "offline/awr", "zombie": "probing/suites", "papermill": "index", "temperature": "train_awr"}
TAG = re.compile(r"<(a|img|script|source|video|iframe|link)\b([^>]*)>")
ATTRIBUTE = re.compile(r'\b(href|src|rel)="([^"]*)"')


@dataclass(frozen=True)
class Page:
    "What a page links to and loads, and the places in it that others may link to"

    ids: frozenset
    hrefs: frozenset
    loads: frozenset
    pictures: int


@cache
def page_of(path: Path) -> Page:
    "The links of one page"
    source = path.read_text()
    tags = [(tag, dict(ATTRIBUTE.findall(rest))) for tag, rest in TAG.findall(source)]
    hrefs = [fields.get("href", "") for tag, fields in tags if tag == "a"]
    loads = [f.get("src") or f.get("href") or "" for tag, f in tags if tag != "a" and f.get("rel") != "canonical"]
    return Page(
        ids=frozenset(re.findall(r'\s(?:id|name)="([^"]+)"', source)),
        hrefs=frozenset(unescape(href) for href in hrefs if href),
        loads=frozenset(unescape(src) for src in loads if src and not src.startswith("data:")),
        pictures=sum(tag == "img" for tag, _ in tags),
    )


def broken_links(site: Path, path: Path) -> list[str]:
    "Links and pictures of one page that lead nowhere"
    problems = []
    for href in sorted(page_of(path).hrefs | page_of(path).loads):
        parts = urlsplit(href)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file() or not target.is_relative_to(site):
            problems.append(f"{path.relative_to(site)}: {href} is not there")
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in page_of(target).ids:
            problems.append(f"{path.relative_to(site)}: {href}: the page has no such place")
    return problems


def from_elsewhere(path: Path) -> list[str]:
    "Scripts, styles and pictures that a page would load from a network"
    return [f"{path.name} loads {src}" for src in page_of(path).loads if re.match(r"(https?:)?//", src)]


def stored_pictures(notebook: Notebook) -> int:
    "Pictures that a notebook holds in cells that the site shows"
    cells = [c for c in notebook.cells if "hide" not in directives(text(c["source"]))[0]]
    outputs = [o for c in cells for o in c.get("outputs", [])]
    return sum(any(kind.startswith("image/") for kind in o.get("data", {})) for o in outputs)


def wrong_pages(site: Path) -> list[str]:
    "Notebooks without a page, or whose page lacks pictures or shows a directive of nbdev"
    problems = []
    for notebook in read_all().values():
        path = site / f"nbs/{notebook.name}.html"
        if not path.exists():
            problems.append(f"nbs/{notebook.name}.ipynb has no page")
            continue
        if page_of(path).pictures < stored_pictures(notebook):
            pictures = f"{page_of(path).pictures} pictures, its notebook {stored_pictures(notebook)}"
            problems.append(f"{notebook.name}.html shows {pictures}")
        if re.search(r"^(?:<[^>]+>)*#\|", path.read_text(), re.M):
            problems.append(f"{notebook.name}.html shows a line that begins with #|")
    return problems


def wrong_search(site: Path) -> list[str]:
    "Words that the search doesn't find on their page, and pages that it doesn't know"
    from sphinx.search.en import SearchEnglish

    source = (site / "searchindex.js").read_text()
    index = json.loads(source[source.index("(") + 1 : source.rindex(")")])
    pages = index["docnames"]
    problems = [f"the search doesn't know {n}" for n in read_all() if f"nbs/{n}" not in pages]
    for word, name in WORDS.items():
        stem = SearchEnglish({}).stem(word)
        hits = [index[part].get(stem, []) for part in ("terms", "titleterms")]
        numbers = {n for hit in hits for n in ([hit] if isinstance(hit, int) else hit)}
        if f"nbs/{name}" in pages and pages.index(f"nbs/{name}") not in numbers:
            problems.append(f"searching for {word} doesn't find {name}")
    return problems


def check(site: Path) -> list[str]:
    "All that is wrong with the site"
    pages = sorted(p for p in site.rglob("*.html") if "_static" not in p.parts)
    problems = wrong_pages(site) + wrong_search(site)
    for path in pages:
        problems += broken_links(site, path) + from_elsewhere(path)
    return problems


if __name__ == "__main__":
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "_docs").resolve()
    problems = check(site)
    for line, times in Counter(problems).items():
        print(line + (f" ({times} times)" if times > 1 else ""))
    pages = [p for p in site.rglob("*.html") if "_static" not in p.parts]
    print(f"{len(pages)} pages in {site.name}, {len(problems)} things wrong")
    sys.exit(bool(problems))
