"""README.md from nbs/index.ipynb: its Markdown, and the Markdown that its cells put out.

`make readme` writes it; with --check the exit code is 1 if README.md is old or links to a file that isn't there.
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


def missing_files(text):
    "The files that a page's links and pictures name and that aren't in the project"
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    return [link for link in links if not (ROOT / link).exists()]


def check():
    "The sentence that says what is wrong with README.md; empty if nothing is"
    text = readme()
    if missing := missing_files(text):
        return f"README.md links to {', '.join(missing)}, which is not there: correct nbs/index.ipynb"
    old = (ROOT / "README.md").read_text() != text
    return "README.md is not what nbs/index.ipynb says: make readme" if old else ""


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(check() or 0)
    (ROOT / "README.md").write_text(readme())
