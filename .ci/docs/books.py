"""The notebooks in nbs/ as the site sees them: kind, title, module, and cells without nbdev's directives."""

import ast
import io
import json
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NBS = ROOT / "nbs"
PACKAGE = "craftax_nb"

ROOMS = """
    world data lm play labelling workers serving nets jobs online worldmodel tuning
    offline evaluation probing widgets demo
""".split()
INTERACTIVE = ["inspect", "play", "runs"]
DIRECTIVE = re.compile(r"^#\s*\|\s*(\w+):?\s*(.*)$")
HEADING = re.compile(r"^(#+)\s+(.*)$", re.M)


@dataclass(frozen=True)
class Cell:
    "One cell, its nbdev directives taken out of its source"

    kind: str  # "markdown", "code" or "raw"
    source: str
    directives: dict  # name -> argument, as in `#| default_exp world.codes`
    tags: tuple
    outputs: tuple

    @property
    def hidden(self) -> bool:
        "Whether readers of the site don't see this cell"
        return self.kind == "raw" or not self.source.strip() or "hide" in self.directives

    @property
    def exported(self) -> bool:
        "Whether the cell goes into the module"
        return bool({"export", "exporti", "exports"} & set(self.directives))

    @property
    def markdown_outputs(self) -> list[str]:
        "The Markdown that this cell put out"
        return [text(o["data"]["text/markdown"]) for o in self.outputs if "text/markdown" in o.get("data", {})]


@dataclass(frozen=True)
class Book:
    "One notebook"

    name: str  # the file's name without .ipynb, such as world.codes
    cells: tuple

    @property
    def room(self) -> str:
        "The room of a library notebook, the empty string for others"
        return self.name.split(".")[0] if "." in self.name else ""

    @property
    def short(self) -> str:
        "The name without its room"
        return self.name.partition(".")[2] or self.name

    @property
    def page(self) -> str:
        "The page's name on the site; `index` is the landing page, so the notebook of that name moves"
        return "about" if self.name == "index" else self.name

    @cached_property
    def kind(self) -> str:
        "Which part of the navigation it belongs to"
        if self.name == "index":
            return "about"
        if self.room:
            return "library"
        for prefix, kind in (("bench_", "benchmark"), ("test_", "test")):
            if self.name.startswith(prefix):
                return kind
        return "interactive" if self.name in INTERACTIVE else "job" if self.parameters else "other"

    @cached_property
    def title(self) -> str:
        "The first heading, or the file's name"
        found = HEADING.search(self.markdown)
        return found.group(2).strip() if found else self.name

    @cached_property
    def subtitle(self) -> str:
        "The quoted line below the title, or the first sentence of the first paragraph"
        body = self.markdown.partition(self.title)[2].strip()
        lines = re.split(r"\n\s*\n|\n#", body)[0].split("\n")
        quoted = " ".join(line.lstrip("> ") for line in lines if line.startswith(">"))
        return quoted or re.split(r"(?<=[.])\s+(?=[A-Z])", " ".join(lines))[0]

    @cached_property
    def markdown(self) -> str:
        "All Markdown of the notebook"
        return "\n\n".join(c.source for c in self.cells if c.kind == "markdown")

    @cached_property
    def parameters(self) -> str:
        "The source of the cell tagged `parameters`, the empty string where there is none"
        return next((c.source for c in self.cells if "parameters" in c.tags), "")

    @cached_property
    def module(self) -> Path | None:
        "The exported file, None where nothing is exported or the export is missing"
        name = next((c.directives["default_exp"] for c in self.cells if "default_exp" in c.directives), None)
        path = ROOT / PACKAGE / f"{name.replace('.', '/')}.py" if name else None
        return path if path and path.exists() else None


def text(source) -> str:
    "A notebook's string, which may be a list of lines"
    return source if isinstance(source, str) else "".join(source)


def cell(raw: dict) -> Cell:
    "One cell of a notebook's JSON"
    lines, directives = text(raw["source"]).split("\n"), {}
    if raw["cell_type"] == "code":
        while lines and (found := DIRECTIVE.match(lines[0])):
            directives[found.group(1)] = found.group(2).strip()
            lines.pop(0)
    tags = tuple(raw["metadata"].get("tags", []))
    return Cell(raw["cell_type"], "\n".join(lines).strip("\n"), directives, tags, tuple(raw.get("outputs", [])))


def read(path: Path) -> Book:
    "The notebook in a file"
    return Book(path.stem, tuple(cell(c) for c in json.loads(path.read_text())["cells"]))


def read_all() -> list[Book]:
    "All notebooks, library first in the order of the rooms"
    books = [read(path) for path in sorted(NBS.glob("*.ipynb"))]
    rooms = room_order(books)
    return sorted(
        books, key=lambda b: (rooms.index(b.room) if b.room else len(rooms), reading_order(books, b.name), b.name)
    )


def room_order(books: list[Book]) -> list[str]:
    "The rooms that there are, known ones first and from left to right"
    there = {b.room for b in books if b.room}
    return [r for r in ROOMS if r in there] + sorted(there - set(ROOMS))


def reading_order(books: list[Book], name: str) -> int:
    "Where the index first names a notebook below its reading order; notebooks that it doesn't name come last"
    index = next((b.markdown for b in books if b.name == "index"), "")
    at = index.find(f"]({name}.ipynb)", max(index.find("Reading order"), 0))
    return at if at >= 0 else len(index)


def section(markdown: str, heading: str) -> str:
    "What stands below the first heading that contains these words, up to the next heading of its level"
    for found in HEADING.finditer(markdown):
        if heading.lower() in found.group(2).lower():
            rest = markdown[found.end() :]
            end = re.search(rf"^#{{1,{len(found.group(1))}}}\s", rest, re.M)
            return rest[: end.start()] if end else rest
    return ""


def spine(books: list[Book]) -> list[tuple[Book, str]]:
    "The notebooks of the index's `Start here`, in order, each with what the list says about it"
    index = next((b.markdown for b in books if b.name == "index"), "")
    by_name = {b.name: b for b in books}
    lines = re.findall(r"^\s*\d+\.\s+(.*)$", section(index, "Start here"), re.M)
    rows = [(re.search(r"\]\(([\w.]+)\.ipynb\)", line), line) for line in lines]
    return [
        (by_name[link.group(1)], line[link.end() :].strip(" :,-–—"))
        for link, line in rows
        if link and link.group(1) in by_name
    ]


@dataclass(frozen=True)
class Parameter:
    "One parameter of a job"

    name: str
    type: str
    default: str
    comment: str


def parameters(book: Book) -> list[Parameter]:
    "The parameters of a notebook, from its tagged cell"
    source = book.parameters
    notes = comments(source)
    return [
        Parameter(n.target.id, ast.unparse(n.annotation), ast.unparse(n.value), note(notes, n.lineno, n.end_lineno))
        for n in ast.parse(source).body
        if isinstance(n, ast.AnnAssign) and n.value
    ]


def comments(source: str) -> dict[int, tuple[bool, str]]:
    "Line number -> (whether the comment stands alone on its line, its text)"
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [t for t in tokens if t.type == tokenize.COMMENT and not t.string.startswith("#|")]
    return {t.start[0]: (not t.line[: t.start[1]].strip(), t.string.lstrip("# ").strip()) for t in found}


def note(notes: dict, first: int, last: int) -> str:
    "The comment at the end of a definition, or else the lines of comment above it"
    if last in notes and not notes[last][0]:
        return notes[last][1]
    above = []
    while (first := first - 1) in notes and notes[first][0]:
        above.insert(0, notes[first][1])
    return " ".join(above)
