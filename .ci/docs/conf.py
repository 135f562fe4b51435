"""Settings of Sphinx (`make docs`). The sources are the project's notebooks as they are; nothing is executed."""

import configparser
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
parser = configparser.ConfigParser()
parser.read(HERE.parents[1] / "settings.ini")
metadata = parser["DEFAULT"]

project, author, copyright = metadata["title"], metadata["author"], metadata["copyright"]
version = release = metadata["version"]
html_title = project
language = "en"

extensions = ["myst_nb", "formulas", "pages"]
root_doc = "nbs/index"
include_patterns = ["nbs/**.ipynb", "slurm/README.md", "CLAUDE.md"]
exclude_patterns = [".*", "_*", "craftax_nb", "runs", "build", "nbs/**/.ipynb_checkpoints"]
nb_execution_mode = "off"
nb_merge_streams = True
nb_number_source_lines = False
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type", "toc.multiple_toc_parents"]
html_math_renderer = "mathml"
highlight_language = "none"

html_theme = "sphinx_book_theme"
html_theme_options = {
    "show_toc_level": 1,
    "home_page_in_toc": False,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_navbar_depth": 1,
    "max_navbar_depth": 3,
    "pygments_light_style": "default",
    "pygments_dark_style": "monokai",
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["search.js"]
html_extra_path = ["root"]
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_last_updated_fmt = None
