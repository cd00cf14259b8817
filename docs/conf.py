"""Settings of the documentation site: `make docs` builds it into dist/docs.

Every page is Markdown (MyST) and also reads well where a repository shows Markdown. Nothing in the
built pages is loaded from another machine, and search works from the disk.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sphinx_extensions"))

project = "Forethought"
author = "The Forethought contributors"
copyright = "The Forethought contributors, Apache-2.0"

extensions = ["myst_parser", "sphinx_copybutton"]

# --- Markdown ---------------------------------------------------------------------------------

myst_heading_anchors = 4  # links name headings as GitHub does
myst_enable_extensions = ["colon_fence", "attrs_inline"]
extensions.append("intervals")  # of the tables; in sphinx_extensions/

# --- look -------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "Forethought"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
