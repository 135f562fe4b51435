"""README.md from nbs/index.ipynb: its Markdown, and the Markdown that its cells put out.

`make readme` writes it; with --check the exit code is 1 if README.md is old.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def readme():
    "The text of README.md; links that are relative to nbs/ become relative to the project"
    parts = []
    for cell in json.loads((ROOT / "nbs" / "index.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append("".join(cell["source"]))
        parts += [
            "".join(o["data"]["text/markdown"]) for o in cell.get("outputs", []) if "text/markdown" in o.get("data", {})
        ]
    return re.sub(r"\]\((?!https?:|#)", "](nbs/", "\n\n".join(parts)).replace("](nbs/../", "](") + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            (ROOT / "README.md").read_text() != readme() and "README.md is not what nbs/index.ipynb says: make readme"
        )
    (ROOT / "README.md").write_text(readme())
