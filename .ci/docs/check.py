"""Looks at the built site: pages, pictures, links, what is loaded from elsewhere, and the search.

python .ci/docs/check.py _docs
"""

import json
import re
import sys
from collections import Counter
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from books import Book, read_all, spine

WORDS = {"advantage": "offline.awr", "zombie": "probing.suites", "papermill": "parameters", "temperature": "train_awr"}


TAG = re.compile(r"<(a|img|script|source|video|iframe|link)\b([^>]*)>")
ATTRIBUTE = re.compile(r'\b(href|src|rel)="([^"]*)"')


class Links:
    "What a page links to, what it loads, and the places in it that others may link to"

    def __init__(self, page: str):
        self.ids = set(re.findall(r'\s(?:id|name)="([^"]+)"', page))
        tags = [(tag, dict(ATTRIBUTE.findall(rest))) for tag, rest in TAG.findall(page)]
        links = [given.get("href", "") for tag, given in tags if tag == "a"]
        self.hrefs = {unescape(href) for href in links if href and not re.fullmatch(r"#L\d+", href)}
        loaded = [
            given.get("src") or given.get("href")
            for tag, given in tags
            if tag != "a" and given.get("rel") != "canonical"
        ]
        self.loads = {unescape(src) for src in loaded if src and not src.startswith("data:")}
        self.pictures = sum(tag == "img" for tag, _ in tags)


@cache
def links(path: Path) -> Links:
    "The links of one page"
    return Links(path.read_text())


def broken(site: Path, page: Path) -> list[str]:
    "Links and pictures of one page that lead nowhere"
    bad = []
    for href in sorted(links(page).hrefs | links(page).loads):
        parts = urlsplit(href)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file() or not target.is_relative_to(site):
            bad.append(f"{page.relative_to(site)}: {href} is not there")
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in links(target).ids:
            bad.append(f"{page.relative_to(site)}: {href}: the page has no such place")
    return bad


def from_elsewhere(page: Path) -> list[str]:
    "Scripts, styles and pictures that a page would load from a network"
    return [f"{page.name} loads {src}" for src in links(page).loads if re.match(r"(https?:)?//", src)]


def stored_pictures(book: Book) -> int:
    "Pictures that a notebook holds in cells that the site shows"
    outputs = [o for c in book.cells if not c.hidden for o in c.outputs]
    return sum(any(kind.startswith("image/") for kind in o.get("data", {})) for o in outputs)


def wrong_pages(site: Path, books: list[Book]) -> list[str]:
    "Notebooks without a page, without a way to it, or with fewer pictures on it than they hold"
    bad, shown = [], {unquote(href).partition("#")[0] for href in links(site / "index.html").hrefs}
    for book in books:
        page = site / f"{book.page}.html"
        if not page.exists():
            bad.append(f"nbs/{book.name}.ipynb has no page")
        elif links(page).pictures < stored_pictures(book):
            bad.append(f"{page.name} shows {links(page).pictures} pictures, its notebook {stored_pictures(book)}")
    bad += [f"the landing page doesn't link to {b.page}.html" for b, _ in spine(books) if f"{b.page}.html" not in shown]
    return bad


def wrong_cells(site: Path, books: list[Book]) -> list[str]:
    "Pages on which a directive of nbdev is left"
    pages = [(b.page, site / f"{b.page}.html") for b in books]
    left = re.compile(r"^(?:<[^>]+>)*#\|", re.M)
    return [
        f"{name}.html shows a line that begins with #|"
        for name, page in pages
        if page.exists() and left.search(page.read_text())
    ]


def search_index(site: Path) -> dict:
    "Sphinx's index of words"
    source = (site / "searchindex.js").read_text()
    return json.loads(source[source.index("(") + 1 : source.rindex(")")])


def wrong_search(site: Path, books: list[Book]) -> list[str]:
    "Words that the search doesn't find on their page, and pages that it doesn't know"
    from sphinx.search.en import SearchEnglish

    index, stem = search_index(site), SearchEnglish({}).stem
    bad = [f"the search doesn't know {b.page}" for b in books if b.page not in index["docnames"]]
    for word, page in WORDS.items():
        hits = [index[part].get(stem(word), []) for part in ("terms", "titleterms")]
        numbers = {n for hit in hits for n in ([hit] if isinstance(hit, int) else hit)}
        if page in index["docnames"] and index["docnames"].index(page) not in numbers:
            bad.append(f"searching for {word} doesn't find {page}")
    return bad


def check(site: Path) -> list[str]:
    "All that is wrong with the site"
    books = read_all()
    pages = sorted(p for p in site.rglob("*.html") if "_static" not in p.parts)
    bad = wrong_pages(site, books) + wrong_cells(site, books) + wrong_search(site, books)
    for page in pages:
        bad += broken(site, page) + from_elsewhere(page)
    return bad


if __name__ == "__main__":
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "_docs").resolve()
    found = check(site)
    for line, times in Counter(found).items():
        print(line + (f" ({times} times)" if times > 1 else ""))
    pages = [p for p in site.rglob("*.html") if "_static" not in p.parts]
    print(f"{len(pages)} pages in {site.name}, {len(found)} things wrong")
    sys.exit(bool(found))
