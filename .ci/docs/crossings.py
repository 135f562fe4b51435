"""Types in signatures lead to their pages: a bare name such as `Dataset` is the one that the module imports."""

import api
from books import ROOT
from sphinx import addnodes


def qualify(app, doctree) -> None:
    "Gives names in signatures the module that they come from"
    for node in doctree.findall(addnodes.pending_xref):
        module, name = node.get("py:module"), node.get("reftarget", "")
        if node.get("refdomain") != "py" or not module or "." in name:
            continue
        path = ROOT / f"{module.replace('.', '/')}.py"
        node["reftarget"] = api.imports(path).get(name, f"{module}.{name}")
        node["refspecific"] = False


def setup(app) -> dict:
    "Called by Sphinx"
    app.connect("doctree-read", qualify)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
