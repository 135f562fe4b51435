"""What a module defines, from its syntax tree alone: signatures, docstrings and the comments beside parameters.

Nothing is imported, so that a build needs neither jax nor torch.
"""

import ast
import inspect
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from books import ROOT, comments, note


@dataclass(frozen=True)
class Entry:
    "One public function, class, method or constant"

    kind: str  # what Sphinx calls it: function, class, method, property, data
    name: str
    signature: str  # with brackets; for a constant " = value" or ""
    doc: str
    parameters: tuple  # (name, comment) of those with a comment
    returns: str  # the comment beside the return type
    line: int
    end: int
    modifiers: tuple = ()  # staticmethod, classmethod
    members: tuple = ()


@cache
def entries(path: Path) -> list[Entry]:
    "The public definitions of a file, in their order; methods that `@patch` adds stand with their class"
    source = path.read_text()
    notes, tree = comments(source), ast.parse(source)
    found = [e for node in tree.body for e in entry(node, notes)]
    classes = {e.name: e for e in found if e.kind == "class"}
    for node in tree.body:
        if (owner := patched(node)) in classes and not node.name.startswith("_"):
            classes[owner] = replace(
                classes[owner], members=(*classes[owner].members, function(node, notes, method=True))
            )
    return [classes.get(e.name, e) for e in found]


def entry(node: ast.stmt, notes: dict) -> list[Entry]:
    "What one statement of a module defines for others, if anything"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and public(node.name) and not patched(node):
        return [function(node, notes)]
    if isinstance(node, ast.ClassDef) and public(node.name):
        return [klass(node, notes)]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [t.id for t in targets if isinstance(t, ast.Name) and public(t.id)]
        return [constant(name, node, notes) for name in names]
    return []


def public(name: str) -> bool:
    "Whether a name is for others"
    return not name.startswith("_") and name not in ("tree_flatten", "tree_unflatten")


def decorators(node) -> list[str]:
    "Names of a definition's decorators, without their arguments"
    return [ast.unparse(d).partition("(")[0].split(".")[-1] for d in getattr(node, "decorator_list", [])]


def patched(node) -> str:
    "The class that `@patch` adds this function to; empty for others"
    if not {"patch", "patch_to"} & set(decorators(node)):
        return ""
    first = (node.args.posonlyargs + node.args.args)[:1]
    return ast.unparse(first[0].annotation).strip("'\"") if first and first[0].annotation else ""


def function(node, notes: dict, method: bool = False) -> Entry:
    "A function or a method"
    marks = decorators(node)
    kind = "function" if not method else "property" if {"property", "cached_property"} & set(marks) else "method"
    args = arguments(node, drop_first=method and "staticmethod" not in marks)
    brackets = "" if kind == "property" else f"({ast.unparse(args)})"
    result = f" -> {ast.unparse(node.returns)}" if node.returns and kind != "property" else ""
    rows = [(a.arg, argument_note(a, d, node, notes)) for a, d in with_defaults(node.args)]
    return Entry(
        kind,
        node.name,
        brackets + result,
        docstring(node),
        tuple(row for row in rows if row[1]),
        return_note(node, notes),
        first_line(node),
        node.end_lineno,
        tuple(m for m in marks if m in ("staticmethod", "classmethod")),
    )


def first_line(node) -> int:
    "Where a definition begins, with its decorators"
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def arguments(node, drop_first: bool) -> ast.arguments:
    "The arguments of a function, without self"
    args = node.args
    if not drop_first or not (args.posonlyargs or args.args):
        return args
    key = "posonlyargs" if args.posonlyargs else "args"
    fields = {f: getattr(args, f) for f in args._fields} | {key: getattr(args, key)[1:]}
    return ast.arguments(**fields)


def with_defaults(args: ast.arguments) -> list[tuple]:
    "Pairs of an argument and its default"
    plain = args.posonlyargs + args.args
    pairs = list(zip(plain, [None] * (len(plain) - len(args.defaults)) + args.defaults))
    pairs += [(args.vararg, None)] if args.vararg else []
    pairs += list(zip(args.kwonlyargs, args.kw_defaults))
    return pairs + ([(args.kwarg, None)] if args.kwarg else [])


def argument_note(arg: ast.arg, default, node, notes: dict) -> str:
    "The comment beside one argument, or above it; several on one line share none"
    last = default.end_lineno if default else arg.end_lineno
    ends = [d.end_lineno if d else a.end_lineno for a, d in with_defaults(node.args)]
    if ends.count(last) > 1 or last == signature_end(node, notes):
        return ""
    return note(notes, arg.lineno, last)


def return_note(node, notes: dict) -> str:
    "The comment beside the result, which is the signature's last line"
    alone, comment = notes.get(signature_end(node, notes), (True, ""))
    return "" if alone or node.body[0].lineno == node.lineno else comment


def signature_end(node, notes: dict) -> int:
    "The line that ends a function's signature"
    end = max(node.lineno, node.body[0].lineno - 1)
    while end > node.lineno and end in notes and notes[end][0]:
        end -= 1
    return end


def klass(node: ast.ClassDef, notes: dict) -> Entry:
    "A class: its fields or its __init__ as the signature, its public methods as members"
    methods = [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    init = next((function(m, notes, True) for m in methods if m.name == "__init__"), None)
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    rows = [(f.target.id, note(notes, f.lineno, f.end_lineno)) for f in fields if public(f.target.id)]
    return Entry(
        "class",
        node.name,
        init.signature.partition(" -> ")[0] if init else field_signature(fields) if is_struct(node) else "",
        docstring(node),
        tuple(row for row in (init.parameters if init and init.parameters else rows) if row[1]),
        "",
        first_line(node),
        node.end_lineno,
        members=tuple(function(m, notes, True) for m in methods if public(m.name) and not setter(m)),
    )


def setter(node) -> bool:
    "Whether this is the setter of a property that is listed already"
    return bool({"setter", "deleter"} & set(decorators(node)))


def is_struct(node: ast.ClassDef) -> bool:
    "Whether the fields make the constructor"
    bases = {ast.unparse(b).split(".")[-1] for b in node.bases}
    return bool({"dataclass"} & set(decorators(node)) or {"NamedTuple", "Module"} & bases)


def field_signature(fields: list) -> str:
    "A constructor's signature from a struct's fields"
    init = [f for f in fields if "ClassVar" not in ast.unparse(f.annotation) and "init=False" not in ast.unparse(f)]
    shown = [f"{f.target.id}: {ast.unparse(f.annotation)}" + field_default(f.value) for f in init]
    return f"({', '.join(shown)})"


def field_default(value) -> str:
    "What stands behind a field: its default, also of `field(...)`"
    if not (isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] == "field"):
        return f" = {ast.unparse(value)}" if value else ""
    given = {k.arg: k.value for k in value.keywords}
    if "default" in given:
        return f" = {ast.unparse(given['default'])}"
    return f" = {ast.unparse(given['default_factory'])}()" if "default_factory" in given else ""


def constant(name: str, node, notes: dict) -> Entry:
    "A module's constant, with its value where that is short"
    value = ast.unparse(node.value) if node.value else ""
    shown = value if len(value) <= 70 and "\n" not in value else ""
    return Entry("data", name, shown, note(notes, node.lineno, node.end_lineno), (), "", node.lineno, node.end_lineno)


def docstring(node) -> str:
    "A definition's docstring without its indentation"
    return inspect.cleandoc(ast.get_docstring(node) or "")


def names(node: ast.stmt) -> list[str]:
    "Names that a statement defines, public or not"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [f"{patched(node)}.{node.name}" if patched(node) else node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [t.id for t in targets if isinstance(t, ast.Name)]


def defined(source: str) -> list[str]:
    "Names that a cell defines, public or not"
    return [name for node in parse(source) for name in names(node)]


def only_imports(source: str) -> bool:
    "Whether a cell does nothing but import"
    body = parse(source)
    return bool(body) and all(isinstance(n, ast.Import | ast.ImportFrom) for n in body)


def parse(source: str) -> list[ast.stmt]:
    "A cell's statements; none where it isn't plain Python (magics)"
    try:
        return ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.M)).body
    except SyntaxError:
        return []


@cache
def lines(path: Path) -> dict[str, tuple[int, int]]:
    "First and last line of everything that a module defines at its top, by name"
    found = {}
    for node in ast.parse(path.read_text()).body:
        first = first_line(node) if hasattr(node, "decorator_list") else node.lineno
        found |= {name: (first, node.end_lineno) for name in names(node) if name not in found}
    return found


@cache
def imports(path: Path) -> dict[str, str]:
    "Names that a module imports from other modules of the project -> their full names"
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
    return {a.asname or a.name: f"{origin(n, path)}.{a.name}" for n in nodes for a in n.names}


def origin(node: ast.ImportFrom, path: Path) -> str:
    "The full name of the module that is imported from, also where the import is relative"
    if not node.level:
        return node.module
    package = path.relative_to(ROOT).parts[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])
