"The notebooks in nbs/ by name: world.codes is nbs/world/codes.ipynb"

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def find_notebooks(root: Path = ROOT) -> dict[str, Path]:
    "Name -> path; without folders and files that begin with `.` or `_`, among them JupyterLab's checkpoints"
    nbs = root / "nbs"
    parts = {path: path.relative_to(nbs).with_suffix("").parts for path in sorted(nbs.rglob("*.ipynb"))}
    return {".".join(p): path for path, p in parts.items() if not any(part.startswith((".", "_")) for part in p)}


def in_library(name: str) -> bool:
    "Whether this is a notebook of a room: a module, or the room's page"
    return "." in name and name.split(".")[0] not in ("tests", "bench")
