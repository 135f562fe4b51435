"""Settings of Sphinx. `make docs` first writes the sources (pages.py); nothing is executed, no network is needed."""

import configparser
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
settings = configparser.ConfigParser()
settings.read(HERE.parents[1] / "settings.ini")
about = settings["DEFAULT"]

project, author, copyright = about["title"], about["author"], about["copyright"]
version = release = about["version"]
html_title = project
language = "en"

extensions = ["myst_nb", "formulas", "crossings"]
root_doc = "index"
exclude_patterns = ["_extra"]
nb_execution_mode = "off"
nb_merge_streams = True
nb_number_source_lines = False
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type", "toc.multiple_toc_parents"]
html_math_renderer = "mathml"

add_module_names = False
toc_object_entries = False
maximum_signature_line_length = 90
python_display_short_literal_types = True
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
html_extra_path = [str(HERE.parents[1] / "_proc" / "docs" / "_extra")]
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_last_updated_fmt = None
