"""Settings of the documentation site: `make docs` builds it into dist/docs.

Every page is Markdown (MyST) and also reads well where a repository shows Markdown. Nothing in the
built pages is loaded from another machine, and search works from the disk.
"""

import sys
from pathlib import Path

EXTENSIONS = (Path(__file__).parent / "sphinx_extensions").resolve()
sys.path[:0] = [str(EXTENSIONS), str(EXTENSIONS.parents[1] / "src")]

project = "Forethought"
author = "The Forethought contributors"
copyright = "The Forethought contributors, Apache-2.0"

extensions = ["myst_parser", "sphinx_copybutton", "from_code", "intervals"]

# --- Markdown ---------------------------------------------------------------------------------

myst_heading_anchors = 4  # links name headings as GitHub does
myst_enable_extensions = ["colon_fence", "attrs_inline", "fieldlist"]
myst_disable_syntax = ["html_inline"]  # a docstring may name a tag

# --- reference ---------------------------------------------------------------------------------

add_module_names = False
maximum_signature_line_length = 80
suppress_warnings = ["ref.python"]  # two modules may each have a class of one name

# --- look -------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "Forethought"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
highlight_language = "text"  # a block without a language is a command or its output
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
