"""`make figures`: executes the notebooks that have cells tagged `figure`; stores the outputs of these cells only.

Arguments name notebooks; without them, those that nbdev skips (`skip_exec: true`) are not executed.
Cells flagged `slow` or `service` run only if tagged themselves. `--check` executes nothing and lists what is wrong.
`make test` compares the stored texts with those of its own run (`stale`). A cell whose numbers differ from run to run,
as times do, has the tag `varies` too: its words alone are compared.
"""

import base64
import difflib
import io
import json
import os
import re
import sys
from pathlib import Path

from notebooks import find_notebooks

LIMIT = 100_000  # characters of stored outputs in one notebook
KEPT = ("text/plain", "text/html", "text/markdown", "image/png", "image/jpeg", "image/svg+xml")
MACHINE_PATH = re.compile(r"(?<![\w.:/<-])/(?:home|root|tmp|work|Users|mnt|var|usr|opt|private|scratch)/\S*")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in `<Figure at 0x7f...>`; nbdev_clean drops it too
FLAG = re.compile(r"^#\| *(slow|service|eval: *false)", re.MULTILINE)
WIDGET = "application/vnd.jupyter.widget-view+json"
COMPARED = ("text/html", "text/markdown", "text/plain")  # the first of them that an output has
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
# A number with a decimal point may differ by this share or by a last digit, as processors round differently.
ROUNDING = 0.02


def is_figure(cell: dict) -> bool:
    "Whether a cell's outputs are stored in git"
    return "figure" in cell["metadata"].get("tags", [])


def small_png(data: str) -> str:
    "A PNG in base64 with at most 256 colours, if that is smaller"
    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA")
    page, buffer = Image.new("RGB", image.size, "white"), io.BytesIO()
    page.paste(image, mask=image)
    page.quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return min(base64.b64encode(buffer.getvalue()).decode(), data.strip(), key=len)


def stored(output: dict) -> dict | None:
    "An output as git keeps it: no execution count, no warnings, no widgets, small pictures; None if nothing remains"
    if output["output_type"] == "stream":
        text = output["text"].splitlines(True)
        return {"name": "stdout", "output_type": "stream", "text": text} if output["name"] == "stdout" else None
    kept = {k: v for k, v in output["data"].items() if k in KEPT and WIDGET not in output["data"]}
    data = {k: v if k.startswith("image/") else ADDRESS.sub("", v).splitlines(True) for k, v in kept.items()}
    if "image/png" in data:
        data["image/png"] = small_png(data["image/png"])
        data.pop("image/jpeg", None)
    counted = {"execution_count": None} if output["output_type"] == "execute_result" else {}
    return {"data": data, "metadata": {}, "output_type": output["output_type"], **counted} if data else None


def execute(path: Path) -> dict[str, list]:
    "Runs a notebook as Jupyter does; the outputs of its cells tagged `figure`, by the cells' ids"
    import nbformat
    from nbclient import NotebookClient

    os.environ.pop("MPLBACKEND", None)
    os.environ |= {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and FLAG.search(cell.source) and not is_figure(cell):
            cell.source = ""
    options = {"kernel_name": "python3", "timeout": None, "startup_timeout": 300, "coalesce_streams": True}
    options |= {"resources": {"metadata": {"path": str(path.parent)}}, "extra_arguments": ["--log-level=ERROR"]}
    NotebookClient(notebook, **options).execute()
    outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code" and is_figure(cell)}
    return {id: [kept for o in several if (kept := stored(o))] for id, several in outputs.items()}


def make(path: Path, run: bool) -> None:
    "Stores a notebook's figures and drops the outputs of its other cells"
    figures = execute(path) if run else {}
    notebook = json.loads(path.read_text())  # read again: executing takes minutes
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = figures.get(cell["id"], cell["outputs"]) if is_figure(cell) else []
    paths = [p for cell in notebook["cells"] for o in cell.get("outputs", []) for p in machine_paths(o)]
    if paths:
        raise SystemExit(
            f"{path.parent.name}/{path.name} is left as it was: its figures have paths of this machine: {paths}"
        )
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def problems(notebook: dict) -> list[str]:
    "What is wrong with the outputs that a notebook stores"
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    size = sum(len(json.dumps(o)) for c in cells for o in c["outputs"])
    out = [f"{size:,} characters of outputs are stored, at most {LIMIT:,} may be"] if size > LIMIT else []
    for cell in cells:
        if is_figure(cell) and not cell["outputs"]:
            out.append(f"cell {cell['id']} is tagged `figure` and has no output: make figures")
        if cell["outputs"] and not is_figure(cell):
            out.append(f"cell {cell['id']} stores an output and is not tagged `figure`: make figures drops it")
        out += [f"cell {cell['id']} stores a machine's path: {p}" for o in cell["outputs"] for p in machine_paths(o)]
    return out


def machine_paths(output: dict) -> list[str]:
    "Absolute paths in an output's texts"
    texts = [v for k, v in output.get("data", {}).items() if not k.startswith("image/")]
    return MACHINE_PATH.findall("\n".join("".join(t) for t in [*texts, output.get("text", "")]))


def texts(outputs: list[dict]) -> list[str]:
    "What is compared of a cell's outputs: all that it prints, and each table, text or value; pictures aren't"
    printed = ["".join(o["text"]) for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout"]
    several = [
        o["data"] for o in outputs if not any(kind.startswith("image/") for kind in o.get("data", {"image/": ""}))
    ]
    shown = [next(("".join(data[kind]) for kind in COMPARED if kind in data), "") for data in several]
    return [ADDRESS.sub("", text).strip() for text in ("".join(printed), *shown) if text.strip()]


def is_close(number: str, other: str) -> bool:
    "Whether two numbers are equal, or, with a decimal point, nearly"
    if "." not in number + other:
        return number == other
    digits = len(number.partition("e")[0].partition(".")[2])
    a, b = float(number), float(other)
    return abs(a - b) <= max(ROUNDING * max(abs(a), abs(b)), 1.001 * 10.0**-digits)


def is_same(text: str, other: str, varies: bool = False) -> bool:
    "Whether two outputs have the same words, and the same numbers unless these vary from run to run"
    if NUMBER.sub("0", text).split() != NUMBER.sub("0", other).split():
        return False
    return varies or all(map(is_close, NUMBER.findall(text), NUMBER.findall(other)))


def stale(cell: dict, outputs: list[dict]) -> str:
    "What is wrong with a figure, given the outputs of a run: a sentence, or nothing"
    kept, new = texts(cell["outputs"]), texts(outputs)
    varies = "varies" in cell["metadata"]["tags"]
    if len(kept) == len(new) and all(is_same(*pair, varies) for pair in zip(kept, new)):
        return ""
    lines = difflib.ndiff(*("\n".join(several).splitlines() for several in (kept, new)))
    differing = "\n".join(f"  {line:.200}" for line in lines if line[0] in "+-")
    return f"cell {cell['id']} keeps another output than it has now: make figures\n{differing:.2000}"


def main(names: list[str], check: bool) -> int:
    "The exit code: 1 if `check` finds problems"
    paths = find_notebooks()
    if missing := {*names} - {*paths}:
        raise SystemExit(f"nbs/ has no notebook {', '.join(sorted(missing))}: name it room.module")
    paths = {name: path for name, path in paths.items() if not names or name in names}
    if check:
        lines = [f"{name}: {p}\n" for name, path in paths.items() for p in problems(json.loads(path.read_text()))]
        print("".join(lines), end="")
        return int(bool(lines))
    for name, path in paths.items():
        cells = json.loads(path.read_text())["cells"]
        skipped = not names and "skip_exec: true" in "".join(cells[-1]["source"])
        make(path, run := any(map(is_figure, cells)) and not skipped)
        print(f"{'executed' if run else 'cleaned '} {name}", flush=True)
    return 0


if __name__ == "__main__":
    arguments = [a.removesuffix(".ipynb") for a in sys.argv[1:]]
    sys.exit(main([a for a in arguments if a != "--check"], "--check" in arguments))
