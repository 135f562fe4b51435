"""What nbdev's notebooks need before myst-nb reads them: directives become tags, parameters become a table, names in
backticks become links, and the pages of the project and of its rooms get the chapters' tables of contents.
"""

import ast
import io
import json
import os
import re
import sys
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))
from notebooks import find_notebooks  # noqa: E402

NBS = ROOT / "nbs"
PAGES = ["inspect", "play", "prompts", "runs"]  # with parameters, but opened by people
DIRECTIVE = re.compile(r"^#\s*\|\s*(\w+):?\s*(.*)$")
LINK = re.compile(r"\]\(([\w./-]+)\.ipynb\)")
TICKS = re.compile(r"(?<![`\\\[])`([\w.]+)(\(\))?`(?![`\]])")
RUNS = {"slow": "Takes minutes: `make test-all` runs it.", "service": "Needs a service: `make test-services` runs it."}


@dataclass(frozen=True)
class Notebook:
    "A notebook of the project"

    path: Path
    cells: tuple  # as in the file

    @property
    def name(self) -> str:
        "Its place in `nbs`, such as world/codes"
        return str(self.path.relative_to(NBS).with_suffix(""))

    @property
    def markdown(self) -> str:
        "All Markdown of the notebook"
        return "\n\n".join(text(c["source"]) for c in self.cells if c["cell_type"] == "markdown")

    @property
    def parameters(self) -> str:
        "The source of the cell tagged `parameters`; empty where there is none"
        return next((text(c["source"]) for c in self.cells if "parameters" in c["metadata"].get("tags", [])), "")


def text(source) -> str:
    "A notebook's string, which may be a list of lines"
    return source if isinstance(source, str) else "".join(source)


@cache
def read(path: Path) -> Notebook:
    "The notebook in a file"
    return Notebook(path, tuple(json.loads(path.read_text())["cells"]))


@cache
def read_all() -> dict[str, Notebook]:
    "Name -> notebook, for all in `nbs`"
    return {notebook.name: notebook for notebook in map(read, find_notebooks().values())}


def directives(source: str) -> tuple[dict, str]:
    "nbdev's directives at the beginning of a cell, and the source without them"
    lines, names = source.split("\n"), {}
    while lines and (match := DIRECTIVE.match(lines[0])):
        names[match.group(1)] = match.group(2).strip()
        lines.pop(0)
    return names, "\n".join(lines).strip("\n")


# Chapters


def in_order(names: list[str], markdown: str, folder: str = "") -> list[str]:
    "Names as a page's links name them first; those that it doesn't name come last"
    links = [os.path.normpath(f"{folder}/{link}" if folder else link) for link in LINK.findall(markdown)]
    rank = {name: i for i, name in reversed(list(enumerate(links)))}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def rooms() -> list[str]:
    "The folders of `nbs` that hold a room, in the order of the project's page"
    folders = {name.split("/")[0] for name in read_all() if "/" in name} - {"tests", "bench"}
    pages = in_order([f"{folder}/index" for folder in folders], read_all()["index"].markdown)
    return [page.split("/")[0] for page in pages]


def chapter(room: str) -> list[str]:
    "A room's notebooks, its page left out, in the reading order of its page"
    names = [name for name in read_all() if name.startswith(f"{room}/") and name != f"{room}/index"]
    page = read_all().get(f"{room}/index")
    return in_order(names, page.markdown if page else "", room)


def spine() -> list[str]:
    "The notebooks of the project's page below `Start here`"
    section = read_all()["index"].markdown.partition("Start here")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\.\s+\[[^\]]+\]\(([\w/]+)\.ipynb\)", section, re.M)


def toctree(entries: list[str], caption: str = "") -> str:
    "A hidden table of contents, which fills the navigation"
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return "```{toctree}\n" + options + "\n" + "\n".join(entries) + "\n```"


def contents() -> str:
    "The tables of contents of the project's page"
    top = [name for name, notebook in read_all().items() if "/" not in name and name != "index"]
    pages = [name for name in top if name in PAGES or not read_all()[name].parameters]
    jobs = in_order([name for name in top if name not in pages], job_links())
    has_page = lambda room: f"{room}/index" in read_all()
    chapters = [n for room in rooms() for n in ([f"{room} <{room}/index>"] if has_page(room) else chapter(room))]
    listed = lambda folder: [f"{Path(name).stem.partition('_')[2]} <{name}>" for name in chapter(folder)]
    return "\n\n".join(
        [
            toctree([f"{i}. {name.replace('/', '.')} <{name}>" for i, name in enumerate(spine(), 1)], "Start here"),
            toctree([f"{name} <{name}>" for name in pages], "Pages"),
            toctree([*(f"{name} <{name}>" for name in jobs), "On a cluster <../slurm/README>"], "Jobs"),
            toctree(chapters, "Rooms"),
            toctree(["Changing the code <../CLAUDE>", *listed("tests")], "For editors"),
            toctree(listed("bench"), "Benchmarks"),
        ]
    )


def job_links() -> str:
    "The project's page with the table of jobs that its cell puts out"
    outputs = [o for c in read_all()["index"].cells for o in c.get("outputs", [])]
    tables = [text(o["data"]["text/markdown"]) for o in outputs if "text/markdown" in o.get("data", {})]
    return "\n".join([*tables, read_all()["index"].markdown])


def room_contents(room: str) -> str:
    "The table of contents of a room's page"
    return toctree([f"{Path(name).stem} <{Path(name).name}>" for name in chapter(room)])


# Names


@cache
def definitions() -> dict[str, str]:
    "Public name that one notebook alone exports -> that notebook's name"
    owners: dict[str, set] = {}
    for notebook in read_all().values():
        for name in (name for c in notebook.cells for name in exported(c)):
            owners.setdefault(name, set()).add(notebook.name)
    return {name: places.pop() for name, places in owners.items() if len(places) == 1}


def exported(cell: dict) -> list[str]:
    "Names of functions and classes that a cell exports, methods and private ones left out"
    names, source = directives(text(cell["source"]))
    if cell["cell_type"] != "code" or "export" not in names:
        return []
    nodes = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)]
    decorators = {n.name: " ".join(map(ast.unparse, n.decorator_list)) for n in nodes}
    return [name for name in decorators if not name.startswith("_") and not decorators[name].startswith("patch")]


def linked(markdown: str, notebook: Notebook) -> str:
    "Markdown whose names in backticks lead to the notebook that defines them"

    def link(match: re.Match) -> str:
        name = match.group(1).removesuffix(".ipynb")
        room, _, last = name.rpartition(".")
        owner = definitions().get(last)
        module = name.replace(".", "/")
        if module in read_all() and (room or name != match.group(1)) and module != notebook.name:
            href = f"{module}.html"
        elif owner and owner != notebook.name and (not room or room.replace(".", "/") == owner):
            if last.islower() and "_" not in last and not room:
                return match.group(0)  # an everyday word
            href = f"{owner}.html#{last}"
        else:
            return match.group(0)
        return f'<a href="{os.path.relpath(NBS / href, notebook.path.parent)}"><code>{match.group(0)[1:-1]}</code></a>'

    parts = re.split(r"(^```.*?^```|^#.*?$|^    .*?$|\[[^\]]*\]\([^)]*\))", markdown, flags=re.M | re.S)
    return "".join(part if i % 2 else TICKS.sub(link, part) for i, part in enumerate(parts))


# Cells


def comments(source: str) -> dict[int, str]:
    "Line number -> the comment on it"
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ").strip() for t in tokens if t.type == tokenize.COMMENT}


def parameter_table(source: str) -> str:
    "The parameters of a job as a table"
    notes, rows = comments(source), []
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and node.value:
            words = re.sub(r"([\\*_{}\[\]<>$|~^])", r"\\\1", notes.get(node.end_lineno, ""))
            default = ast.unparse(node.value)
            shown = "empty" if default == "''" else f"`{default}`"
            rows.append(f"| `{node.target.id}` | {ast.unparse(node.annotation)} | {shown} | {words} |")
    return "\n".join(["| parameter | type | default | meaning |", "|---|---|---|---|", *rows])


def only_imports(source: str) -> bool:
    "Whether a cell only imports"
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic
        return False
    return bool(body) and all(isinstance(node, ast.Import | ast.ImportFrom) for node in body)


def markdown_cell(source: str) -> dict:
    "A Markdown cell"
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def shown(cell: dict, notebook: Notebook) -> list[dict]:
    "The cells that the site shows for one cell"
    source = text(cell["source"])
    if cell["cell_type"] == "markdown":
        return [markdown_cell(linked(source, notebook))]
    names, source = directives(source)
    if cell["cell_type"] == "raw" or not source or "hide" in names:
        return []
    tags, before = list(cell["metadata"].get("tags", [])), []
    if "parameters" in tags:
        before.append(markdown_cell(parameter_table(source)))
    if "parameters" in tags or only_imports(source):
        tags.append("hide-input")
    if names.get("echo") == "false":
        tags.append("remove-input")
    if "export" in names:
        tags.append("exported")
        before += [markdown_cell("".join(f'<a id="{name}"></a>' for name in exported(cell)))] if exported(cell) else []
    before += [markdown_cell(note) for name, note in RUNS.items() if name in names]
    kept = cell["outputs"] if "figure" in tags else []  # others are of a person who ran the page
    tables = [text(o["data"]["text/markdown"]) for o in kept if "text/markdown" in o.get("data", {})]
    outputs = [o for o in kept if "text/markdown" not in o.get("data", {})]
    code = {**cell, "source": source, "outputs": outputs, "metadata": {"tags": tags}}
    return [*before, code, *(markdown_cell(linked(table, notebook)) for table in tables)]


def prepare(app, docname: str, content: list[str]) -> None:
    "Sphinx's event `source-read`: rewrites a notebook before myst-nb parses it"
    path = ROOT / f"{docname}.ipynb"
    if not path.exists():
        return
    notebook = read(path)
    cells = [new for cell in notebook.cells for new in shown(cell, notebook)]
    if notebook.name == "index":
        cells.append(markdown_cell(contents()))
    elif path.stem == "index":
        cells.append(markdown_cell(room_contents(path.parent.name)))
    metadata = {"kernelspec": {"name": "python3", "display_name": "python3", "language": "python"}}
    cells = [{**cell, "id": f"cell-{i}"} for i, cell in enumerate(cells)]
    content[0] = json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def setup(app) -> dict:
    "Called by Sphinx"
    app.connect("source-read", prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
