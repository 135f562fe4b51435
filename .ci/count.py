"""How many checks the notebooks hold: .ci/count.py [folder]; compare the number before and after a change.

Counted are `assert` statements and calls of functions named test_... or assert_... (fastcore's test_eq, NumPy's
assert_allclose), in code cells and in the programs that cells hold as strings. Asserts in exported cells are counted
apart: they guard the library and check nothing by themselves.
"""

import ast
import json
import sys
from pathlib import Path

from notebooks import ROOT, find_notebooks


def parsed(source):
    "The syntax tree of a cell or a program; None where it is neither. Lines for IPython alone become `pass`"
    lines = source.splitlines()
    plain = [f"{line[: -len(line.lstrip())]}pass" if line.lstrip()[:1] in ("%", "!") else line for line in lines]
    try:
        return ast.parse("\n".join(plain))
    except (SyntaxError, ValueError):
        return None


def is_check(node):
    "Whether a node of a syntax tree is an assertion"
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    return name.startswith(("test_", "assert_"))


def is_program(node):
    "Whether a node is a string that may hold a program with assertions"
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "assert " in node.value


def checks(source):
    "The number of assertions in a cell or a program"
    tree = parsed(source)
    if tree is None:
        return 0
    nodes = list(ast.walk(tree))
    return sum(map(is_check, nodes)) + sum(checks(node.value) for node in nodes if is_program(node))


def count(notebook):
    "(assertions in tests and examples, assertions in exported cells) of a notebook"
    cells = json.loads(notebook.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    exported = [source for source in sources if source.startswith("#| export")]
    tests = [source for source in sources if not source.startswith("#| export")]
    return sum(map(checks, tests)), sum(map(checks, exported))


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    counts = {name: count(path) for name, path in find_notebooks(root).items()}
    for name, (tests, exported) in counts.items():
        print(f"{tests:5} {exported:5}  {name}")
    tests, exported = map(sum, zip(*counts.values()))
    print(f"{tests} assertions in tests and examples, {exported} in exported cells, {len(counts)} notebooks")


if __name__ == "__main__":
    main()
