"""Links between pages: those of the notebooks' Markdown, and names in backticks that have a page or an entry."""

import html
import re
from pathlib import Path

import api
import listing
from books import NBS, PACKAGE, ROOT, Book

FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
TICKS = re.compile(r"(?<![`\\\[])`([^`\n]+)`(?![`\]])")
SPECIAL = re.compile(r"([\\*_{}\[\]<>$|~#^])")


def plain(markdown: str) -> str:
    "Markdown without links and backticks, for titles"
    return LINK.sub(r"\2", markdown).replace("`", "")


def escape(words: str, table: bool = False) -> str:
    "Words of a comment or a docstring as Markdown: only what stands in backticks keeps its meaning"
    parts = re.split(r"(`[^`\n]+`)", words)
    return "".join(
        (p.replace("|", "\\|") if table else p) if i % 2 else SPECIAL.sub(r"\\\1", p) for i, p in enumerate(parts)
    )


class Links:
    "Where names lead"

    def __init__(self, books: list[Book], moved: dict[str, str]):
        self.pages = {b.name: f"{b.page}.ipynb" for b in books}
        self.moved = {ROOT / source: f"{page}.md" for source, page in moved.items()}
        self.moved |= {ROOT / "README.md": self.pages.get("index", "index.md")}
        self.files: set[Path] = set()  # of the project, outside nbs/, that some page links to
        self.names: dict[str, set] = {}
        for book in books:
            module = book.module and ".".join(book.module.relative_to(ROOT).with_suffix("").parts)
            for name in [e.name for e in api.entries(book.module)] if module else []:
                self.names.setdefault(name, set()).add(f"{module}.{name}")

    def rewrite(self, markdown: str, book: Book | None = None, folder: Path = NBS) -> str:
        "Markdown with its links turned to the site's pages, and links for names in backticks"
        parts, at = [], 0
        for fence in FENCE.finditer(markdown):
            parts += [self._prose(markdown[at : fence.start()], book, folder), fence.group(0)]
            at = fence.end()
        return "".join([*parts, self._prose(markdown[at:], book, folder)])

    def words(self, words: str, book: Book, table: bool = False) -> str:
        "Words of a comment or a docstring as Markdown, with links for names in backticks"
        return self._ticks(escape(words, table), book)

    def _prose(self, markdown: str, book: Book | None, folder: Path) -> str:
        lines = []
        for line in markdown.split("\n"):
            line = LINK.sub(lambda found: self._link(found, folder), line)
            skip = line.startswith(("#", "    ")) or LINK.search(line) and "](" in line and "`](" in line
            lines.append(line if skip else self._ticks(line, book))
        return "\n".join(lines)

    def _link(self, found: re.Match, folder: Path) -> str:
        picture, words, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found.group(0)
        name, _, anchor = target.partition("#")
        path = (folder / name).resolve()
        page = self.pages.get(path.stem) if path.parent == NBS and path.suffix == ".ipynb" else self.moved.get(path)
        if picture and path.is_relative_to(NBS):
            return f"![{words}]({path.relative_to(NBS)})"
        if page:
            return f"[{words}]({page}{'#' + anchor if anchor else ''})"
        if path.is_file() and path.is_relative_to(ROOT):
            self.files.add(path)
            return f'<a href="{listing.page(path)}">{html.escape(words)}</a>'
        return words

    def _ticks(self, line: str, book: Book | None) -> str:
        return TICKS.sub(lambda found: self._tick(found.group(1), book) or found.group(0), line)

    def _tick(self, words: str, book: Book | None) -> str:
        "The link for a name in backticks, the empty string where it leads nowhere or to several places"
        bare = words.removesuffix("()").removeprefix(f"{PACKAGE}.").removesuffix(".ipynb").removeprefix("nbs/")
        if bare in self.pages and (("." in bare) or words.endswith(".ipynb")) and not (book and book.name == bare):
            return f"[`{words}`]({self.pages[bare]})"
        if not re.fullmatch(r"[\w.]+", bare):
            return ""
        room, _, name = bare.rpartition(".")
        full = f"{PACKAGE}.{bare}"
        if room and full in self.names.get(name, ()):
            return f"{{py:obj}}`{words} <{full}>`"
        own = f"{PACKAGE}.{book.name}.{bare}" if book else ""
        targets = self.names.get(bare, set())
        if own in targets:
            return f"{{py:obj}}`{words} <{own}>`"
        distinct = len(targets) == 1 and (bare[0].isupper() or "_" in bare.strip("_"))
        return f"{{py:obj}}`{words} <{next(iter(targets))}>`" if distinct else ""
