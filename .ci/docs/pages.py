"""The site's sources: every notebook, with what its module defines, and the pages that lead to them.

    python .ci/docs/pages.py _proc/docs

A file that would not change is not written again, so that a second build only reads what is new.
"""

import base64
import html
import json
import re
import sys
from pathlib import Path

import api
import listing
from books import NBS, ROOT, Book, Cell, parameters, read_all, room_order, section, spine, text
from links import Links, escape, plain

LISTS = {
    "benchmark": ("Benchmarks", "What `make bench` measures, one notebook each; results are CPU-seconds and medians."),
    "test": (
        "Tests",
        "Library notebooks test what they define, beside the definition. These test several things together.",
    ),
}
MOVED = {"slurm/README.md": "clusters", "CLAUDE.md": "changing"}


class Site:
    "The folder of sources: what was written now, so that the rest can go"

    def __init__(self, folder: Path):
        self.folder, self.written = folder, set()

    def write(self, name: str, content: str | bytes) -> None:
        "Writes a file if its content is new"
        path = self.folder / name
        content = content.encode() if isinstance(content, str) else content
        path.parent.mkdir(parents=True, exist_ok=True)
        self.written.add(path)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)

    def listing(self, path: Path, books: list[Book]) -> None:
        "Writes the listing of a file, unless there is one that is younger"
        target = self.folder / listing.EXTRA / listing.page(path)
        self.written.add(target)
        if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
            self.write(str(target.relative_to(self.folder)), listing.html_of(path, books))

    def prune(self) -> None:
        "Removes what an earlier build left and this one didn't write"
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in self.written:
                path.unlink()


def markdown(source: str) -> dict:
    "A Markdown cell"
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code(cell: Cell, **metadata) -> dict:
    "A code cell with its stored outputs, other than Markdown, which follows as a cell of its own"
    outputs = [tidy(o) for o in cell.outputs if "text/markdown" not in o.get("data", {})]
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": cell.source,
        "outputs": outputs,
        "execution_count": None,
    }


def tidy(output: dict) -> dict:
    "An output without what pandas brings along to style its tables, and without pictures that are there twice"
    data = dict(output.get("data", {}))
    if "text/html" in data:
        table = re.sub(r"<style.*?</style>", "", text(data["text/html"]), flags=re.S)
        data["text/html"] = table.replace(' border="1"', "").replace(' style="text-align: right;"', "")
    if "image/png" in data:
        data.pop("image/jpeg", None)
    return {**output, "data": data} if "data" in output else output


def notebook(book: Book, links: Links) -> str:
    "A notebook's page, as a notebook"
    cells = [markdown(f"# {book.name}")] if not re.search(r"^# ", book.markdown, re.M) else []
    for cell in book.cells:
        cells += shown(cell, book, links)
        cells += [] if cell.hidden else [markdown(links.rewrite(m, book)) for m in cell.markdown_outputs]
    cells = with_header(cells, book)
    cells += [markdown(part) for part in reference(book, links)]
    meta = {
        "kernelspec": {"name": "python3", "display_name": "python3", "language": "python"},
        "language_info": {"name": "python"},
    }
    return json.dumps(
        {"cells": cells, "metadata": meta, "nbformat": 4, "nbformat_minor": 4}, indent=1, ensure_ascii=False
    )


def shown(cell: Cell, book: Book, links: Links) -> list[dict]:
    "What the site shows of one cell"
    if cell.hidden:
        return []
    if cell.kind == "markdown":
        return [markdown(links.rewrite(cell.source, book))]
    if "parameters" in cell.tags:
        return [
            markdown(parameter_table(book)),
            code(cell, tags=["hide-input"], mystnb=prompt("the cell of parameters")),
        ]
    if api.only_imports(cell.source):
        return [code(cell, tags=["hide-input"], mystnb=prompt("imports"))]
    if cell.directives.get("echo") == "false":
        return [code(cell, tags=["remove-input"])]
    when = next((d for d in ("slow", "service") if d in cell.directives), "")
    note = [markdown(f'<p class="cell-note">{RUNS[when]}</p>')] if when else []
    tags = ["exported"] if cell.exported else []
    return [
        *note,
        code(cell, tags=tags),
        *([markdown(source_line(cell, book))] if cell.exported and book.module else []),
    ]


RUNS = {
    "slow": "Takes minutes: runs with <code>make test-all</code>.",
    "service": "Needs a real service: runs with <code>make test-services</code>.",
}


def prompt(what: str) -> dict:
    "The words of a folded cell"
    return {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}


def with_header(cells: list[dict], book: Book) -> list[dict]:
    "The cells, with a line below the title that says where the source is"
    at = next(
        (i for i, c in enumerate(cells) if c["cell_type"] == "markdown" and c["source"].lstrip().startswith("# ")), 0
    )
    where = f'<a href="nbs/{book.name}.ipynb" download>nbs/{book.name}.ipynb</a>'
    if book.module:
        where += f' → <a href="{listing.page(book.module)}">{book.module.relative_to(ROOT)}</a>'
    line = f'<p class="page-source">{where}</p>'
    if book.kind == "job":
        line += f"\n\n```sh\n.venv/bin/papermill nbs/{book.name}.ipynb runs/out.ipynb{example(book)}\n```"
    title, _, rest = cells[at]["source"].lstrip().partition("\n")
    quote = re.match(r"\s*((?:>.*\n?)+)", rest)
    lead, rest = (quote.group(1), rest[quote.end() :]) if quote else ("", rest)
    body = "\n\n".join(part.strip() for part in (title, lead, line, rest) if part.strip())
    return [*cells[:at], markdown(body), *cells[at + 1 :]]


def example(book: Book) -> str:
    "One parameter as papermill takes it"
    names = [p.name for p in parameters(book)]
    return " -p seed 1" if "seed" in names else ""


def source_line(cell: Cell, book: Book) -> str:
    "Links below an exported cell: to the entries in the reference, and to the lines of the module"
    names = api.defined(cell.source)
    places = [place for name in names if (place := api.lines(book.module).get(name))]
    if not places:
        return ""
    public = {e.name for e in api.entries(book.module)}
    shown = [f'<a href="#{module_name(book)}.{n}"><code>{n}</code></a>' for n in names if n in public]
    first, last = min(p[0] for p in places), max(p[1] for p in places)
    source = f'<a href="{listing.page(book.module)}#L{first}">source, lines {first} to {last}</a>'
    return f'<p class="cell-source">{" ".join([*shown, source])}</p>'


def module_name(book: Book) -> str:
    "The module's dotted name"
    return ".".join(book.module.relative_to(ROOT).with_suffix("").parts)


def reference(book: Book, links: Links) -> list[str]:
    "What the module defines for others: signatures, docstrings, parameters, links to the source"
    entries = api.entries(book.module) if book.module else []
    if not entries:
        return []
    module = module_name(book)
    head = f"## Reference\n\n```{{py:module}} {module}\n```"
    return [head, *("\n\n".join(block(e, book, links)) for e in entries)]


def block(entry: api.Entry, book: Book, links: Links, owner: str = "", fence: str = "::::") -> list[str]:
    "One entry as a directive of Sphinx, its members inside"
    name = f"{owner}{entry.name}"
    value = [f":value: {json.dumps(entry.signature)}"] if entry.kind == "data" and entry.signature else []
    signature = "" if entry.kind in ("data", "property") else entry.signature
    options = [*value, *(f":{m}:" for m in entry.modifiers)]
    body = [f'<a class="entry-source" href="{listing.page(book.module)}#L{entry.line}">source</a>']
    body += [links.words(entry.doc, book)] if entry.doc else []
    rows = [*entry.parameters, *([("returns", entry.returns)] if entry.returns else [])]
    body += [definition_table(rows, book, links)] if rows else []
    for member in entry.members:
        body += block(member, book, links, f"{name}.", fence[:-1])
    return ["\n".join([f"{fence}{{py:{entry.kind}}} {name}{signature}", *options]), *body, fence]


def definition_table(rows: list[tuple], book: Book, links: Links) -> str:
    "Names and what they mean"
    lines = [
        f"| {name if name == 'returns' else f'`{name}`'} | {links.words(comment, book, table=True)} |"
        for name, comment in rows
    ]
    return "\n".join(["| | |", "|---|---|", *lines])


def parameter_table(book: Book) -> str:
    "All parameters of a job"
    rows = [
        f"| `{p.name}` | {p.type} | {literal(p.default)} | {escape(p.comment, table=True)} |" for p in parameters(book)
    ]
    return "\n".join(["| parameter | type | default | what it is |", "|---|---|---|---|", *rows])


def literal(value: str) -> str:
    "A default as code, the empty string as a word"
    return "empty" if value in ("''", '""') else f"`{value}`"


def parameters_page(books: list[Book], jobs: list[Book]) -> str:
    "All jobs' parameters on one page"
    parts = [
        "# Parameters of all jobs",
        "Every job is a notebook with one cell of parameters. papermill sets them, here or in a batch script:",
        "```sh\n.venv/bin/papermill nbs/train_awr.ipynb runs/out.ipynb -p beta 0.3\n```",
        "An unknown name or a wrong type ends a job within seconds. Paths are relative to the project.",
    ]
    others = [b for b in books if b.parameters and b not in jobs and b.kind != "test"]
    for book in jobs + others:
        parts += [
            f"## {book.name}",
            f"[{plain(book.title)}]({book.page}.ipynb). {escape(plain(book.subtitle))}",
            parameter_table(book),
        ]
    return "\n\n".join(parts) + "\n"


def room_page(room: str, books: list[Book]) -> str:
    "A room: what it is, its modules with what each one holds"
    index = next(b for b in books if b.name == "index")
    row = re.search(rf"^\|\s*`?{room}`?\s*\|\s*([^|]+?)\s*\|", index.markdown, re.M)
    inside = [b for b in books if b.room == room]
    lines = [
        f"| [{b.short}]({b.page}.ipynb) | {escape(plain(b.title), True)} | {escape(plain(b.subtitle), True)} |"
        for b in inside
    ]
    return "\n\n".join(
        [
            f"# {room}",
            f"> {row.group(1)}" if row else "",
            "\n".join(["| module | title | what it holds |", "|---|---|---|", *lines]),
            toctree([f"{b.short} <{b.page}>" for b in inside]),
        ]
    )


def toctree(entries: list[str], caption: str = "") -> str:
    "A hidden toctree, which only fills the navigation"
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return "```{toctree}\n" + options + "\n" + "\n".join(entries) + "\n```"


def job_order(books: list[Book]) -> list[Book]:
    "The job notebooks, as the index names them"
    index = next(b for b in books if b.name == "index")
    named = " ".join(
        [index.markdown, *(c.source for c in index.cells), *(m for c in index.cells for m in c.markdown_outputs)]
    )
    jobs = [b for b in books if b.kind == "job"]
    return sorted(
        jobs,
        key=lambda b: named.find(f'"{b.name}"') if f'"{b.name}"' in named else named.find(f"{b.name}.ipynb") % 10**9,
    )


def navigation(books: list[Book]) -> str:
    "The toctrees of the landing page"
    others = [f"{plain(b.title)} <{b.page}>" for b in books if b.kind == "other"]
    first = [f"{i}. {plain(b.title)} <{b.page}>" for i, (b, _) in enumerate(spine(books), 1)]
    return "\n\n".join(
        [
            toctree(["About <about>", *first, *others], "Start here"),
            toctree(
                [
                    "All parameters <parameters>",
                    *(f"{b.name} <{b.page}>" for b in job_order(books)),
                    "On a cluster <clusters>",
                ],
                "Jobs",
            ),
            toctree([f"{b.name} <{b.page}>" for b in books if b.kind == "interactive"], "Interactive"),
            toctree([f"{room} <room_{room}>" for room in room_order(books)], "Library"),
            toctree(["Changing the code <changing>", "Benchmarks <benchmarks>", "Tests <tests>"], "For editors"),
        ]
    )


def list_page(books: list[Book], kind: str, title: str, about: str) -> str:
    "A page that lists all notebooks of one kind"
    listed = [b for b in books if b.kind == kind]
    rows = [f"| [{b.name}]({b.page}.ipynb) | {escape(plain(b.subtitle), True)} |" for b in listed]
    names = [f"{b.name.partition('_')[2]} <{b.page}>" for b in listed]
    return "\n\n".join(
        [f"# {title}", about, "\n".join(["| notebook | what it is |", "|---|---|", *rows]), toctree(names)]
    )


def landing(books: list[Book], links: Links, site: Site) -> str:
    "The first page"
    index = next(b for b in books if b.name == "index")
    intro = re.split(r"\n\s*\n", index.markdown.partition(index.subtitle)[2].strip())[0]
    sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z])", " ".join(intro.split("\n")))
    moving = (NBS / "images" / "inspector.gif").exists()
    picture = f"![The state inspector](images/inspector.{'gif' if moving else 'png'})"
    return "\n\n".join(
        [
            "---\nhtml_theme.sidebar_secondary.remove: true\n---",
            f"# {index.title}",
            f'<p class="question">{html.escape(plain(index.subtitle))}</p>',
            links.rewrite(" ".join(sentences[:2]), index),
            f"```sh\n{commands(index)}\n```",
            picture,
            "[The inspector](inspect.ipynb): change a state by a click, and see what V and the policy of two agents do."
            if any(b.name == "inspect" for b in books)
            else "",
            *result(books, index, links, site),
            *first_pages(books, links),
            navigation(books),
        ]
    )


def commands(index: Book) -> str:
    "The two commands, from the index"
    blocks = re.findall(r"```(?:sh|bash)\n(.*?)```", index.markdown, re.S)
    return next((b.strip() for b in blocks if "make demo" in b), "make demo\nmake test")


def result(books: list[Book], index: Book, links: Links, site: Site) -> list[str]:
    "One result: the index's table of results, or the first stored picture of the probes"
    parts = [
        part for cell in index.cells for part in ([cell.source] if cell.kind == "markdown" else cell.markdown_outputs)
    ]
    found = section("\n\n".join(parts), "result").strip()
    if "|---" in found.replace("|:-", "|-").replace("| -", "|-"):
        return ["## Results", links.rewrite(found, index)]
    for book in (b for b in books if b.room == "probing" and b.short == "values" or b.kind == "benchmark"):
        for picture in (
            o["data"]["image/png"] for c in book.cells for o in c.outputs if "image/png" in o.get("data", {})
        ):
            site.write("images/result.png", base64.b64decode(text(picture)))
            return [
                "## A result",
                f"![{book.title}](images/result.png)",
                f"From [{plain(book.title)}]({book.page}.ipynb).",
            ]
    return []


def first_pages(books: list[Book], links: Links) -> list[str]:
    "The spine with what its list says, or, where the index has none, the rooms"
    index = next(b for b in books if b.name == "index")
    if rows := spine(books):
        lines = [
            f"{i}. [{plain(b.title)}]({b.page}.ipynb): {links.rewrite(about, index)}"
            for i, (b, about) in enumerate(rows, 1)
        ]
        heading = re.search(r"^#+\s+(.*Start here.*)$", index.markdown, re.M)
        return [f"## {heading.group(1)}", '<div class="spine">', "\n".join(lines), "</div>"]
    rooms = [f"[{room}](room_{room}.md)" for room in room_order(books)]
    return ["## Where to read", "The data go through the rooms from left to right: " + ", ".join(rooms) + "."]


def build(folder: Path) -> None:
    "Writes all sources of the site below `folder`"
    books, site = read_all(), Site(folder)
    links = Links(books, MOVED)
    for book in books:
        site.write(f"{book.page}.ipynb", notebook(book, links))
    for room in room_order(books):
        site.write(f"room_{room}.md", room_page(room, books))
    for source, page in MOVED.items():
        site.write(f"{page}.md", links.rewrite((ROOT / source).read_text(), folder=(ROOT / source).parent))
    site.write("parameters.md", parameters_page(books, job_order(books)))
    for kind, (title, about) in LISTS.items():
        site.write(f"{kind}s.md", list_page(books, kind, title, about))
    site.write("index.md", landing(books, links, site))
    for picture in (NBS / "images").iterdir():
        site.write(f"images/{picture.name}", picture.read_bytes())
    for book in books:
        site.write(f"{listing.EXTRA}/nbs/{book.name}.ipynb", (NBS / f"{book.name}.ipynb").read_bytes())
    for path in [b.module for b in books if b.module] + sorted(links.files):
        site.listing(path, books)
    site.prune()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: pages.py FOLDER, where the site's sources go (make docs)")
    build(Path(sys.argv[1]).resolve())
