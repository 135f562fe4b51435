"""How the library's code reads, in figures: .ci/style.py [room ...] prints a row a room, and what to mend in it.

The figures: characters of the median function; the share of names that are an adjective or a verb alone; assignments
`a, b = x, y` in 1,000 lines; functions with more than seven arguments; visible examples of more than twelve lines; and
code cells that keep an output. test_house holds limits for them.
"""

import ast
import json
import re
import statistics
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from notebooks import find_notebooks, in_library

MAX_ARGUMENTS = 7
MAX_EXAMPLE_LINES = 12
# Words that tell nothing as a name of their own: a name is a noun of the field.
NO_NOUNS = set(
    """
    about answered asked begin begun changed chosen counted done drawn dropped ended follow found given gone held joined
    kept known learned learnt listed look lost made mine moved named played put reach reading said seen shown stand
    stored taken tell told wanted went worn written ask
    """.split()
)
EXPORT = re.compile(r"#\|\s*export")
NOT_SHOWN = re.compile(r"^#\|\s*(hide|slow|service|default_exp|on_import)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    "A code cell of a notebook; `tree` is None for one that isn't Python"

    name: str  # of its notebook, room.module
    id: str
    source: str
    has_output: bool

    @cached_property
    def tree(self):
        plain = re.sub(r"^(\s*)[%!].*$", r"\1pass", self.source, flags=re.MULTILINE)
        try:
            return ast.parse(plain)
        except SyntaxError:
            return None

    @property
    def lines(self) -> list[str]:
        "Lines that aren't blank, without nbdev's directives"
        return [line for line in self.source.splitlines() if line.strip() and not line.startswith("#|")]

    @property
    def is_exported(self) -> bool:
        return bool(EXPORT.match(self.source))

    @property
    def is_example(self) -> bool:
        "Whether a reader sees it as an example: neither exported nor hidden, and not imports alone"
        if self.tree is None or self.is_exported or NOT_SHOWN.search(self.source):
            return False
        return not all(isinstance(node, ast.Import | ast.ImportFrom) for node in self.tree.body)


def read_cells(name: str, path: Path) -> list[Cell]:
    "The code cells of a notebook"
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    return [Cell(name, c["id"], "".join(c["source"]), bool(c["outputs"])) for c in cells]


def library_cells() -> list[Cell]:
    "The code cells of all notebooks of the library, the rooms' pages among them"
    return [cell for name, path in find_notebooks().items() if in_library(name) for cell in read_cells(name, path)]


# ---- What is counted in a syntax tree


def bindings(tree) -> list[str]:
    "Names that are bound: variables, arguments, functions, classes"
    nodes = list(ast.walk(tree))
    names = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    names += [node.arg for node in nodes if isinstance(node, ast.arg)]
    return names + [node.name for node in functions(tree) + classes(tree)]


def functions(tree) -> list:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def classes(tree) -> list:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def is_pair(node) -> bool:
    "Whether a node assigns several values to as many names"
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    return isinstance(target, ast.Tuple) and len(target.elts) == len(node.value.elts)


def num_arguments(function) -> int:
    "Arguments of a function, without `self` and `cls`"
    several = function.args
    arguments = [*several.posonlyargs, *several.args, *several.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in arguments)


# ---- The figures


@dataclass
class Style:
    "The figures of some cells, and what to mend"

    cells: list[Cell]
    exported: list[Cell] = field(init=False)

    def __post_init__(self):
        self.exported = [cell for cell in self.cells if cell.is_exported and cell.tree is not None]

    @property
    def median_characters(self) -> float:
        lengths = [
            len(ast.get_source_segment(cell.source, function) or "")
            for cell in self.exported
            for function in functions(cell.tree)
        ]
        return statistics.median(lengths or [0])

    @property
    def bad_names(self) -> list[str]:
        return [
            f"{cell.name} {cell.id}: {name}"
            for cell in self.exported
            for name in bindings(cell.tree)
            if name in NO_NOUNS
        ]

    @property
    def bad_name_share(self) -> float:
        return len(self.bad_names) / max(1, sum(len(bindings(cell.tree)) for cell in self.exported))

    @property
    def pairs(self) -> list[str]:
        return [
            f"{cell.name} {cell.id}: {ast.unparse(node)[:80]}"
            for cell in self.exported
            for node in ast.walk(cell.tree)
            if is_pair(node)
        ]

    @property
    def pairs_in_1000_lines(self) -> float:
        return 1000 * len(self.pairs) / max(1, sum(len(cell.lines) for cell in self.exported))

    @property
    def many_arguments(self) -> list[str]:
        return [
            f"{cell.name} {cell.id}: {function.name} has {num_arguments(function)} arguments"
            for cell in self.exported
            for function in functions(cell.tree)
            if num_arguments(function) > MAX_ARGUMENTS
        ]

    @property
    def long_examples(self) -> list[str]:
        return [
            f"{cell.name} {cell.id}: {len(cell.lines)} lines: {cell.lines[0][:60]}"
            for cell in self.cells
            if cell.is_example and len(cell.lines) > MAX_EXAMPLE_LINES
        ]

    @property
    def output_share(self) -> float:
        "The share of code cells that keep an output"
        return sum(cell.has_output for cell in self.cells) / max(1, len(self.cells))


HEADER = f"{'room':12} {'median':>6} {'names %':>7} {'pairs/k':>7} {'args':>4} {'long':>4} {'outputs %':>9}"


def row(room: str, style: Style) -> str:
    "A room's line of the table"
    names = f"{100 * style.bad_name_share:7.2f} {style.pairs_in_1000_lines:7.1f} {len(style.many_arguments):4}"
    return (
        f"{room:12} {style.median_characters:6.0f} {names} {len(style.long_examples):4} {100 * style.output_share:9.1f}"
    )


def main(rooms: list[str]) -> None:
    cells = library_cells()
    by_room = {}
    for cell in cells:
        by_room.setdefault(cell.name.split(".")[0], []).append(cell)
    print(HEADER)
    for room, few in by_room.items():
        if not rooms or room in rooms:
            print(row(room, Style(few)))
    print(row("library", Style(cells)))
    for room in rooms:
        style = Style(by_room[room])
        print("\n".join([*style.bad_names, *style.pairs, *style.many_arguments, *style.long_examples]))


if __name__ == "__main__":
    main(sys.argv[1:])
