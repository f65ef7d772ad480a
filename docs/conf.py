"""How Sphinx builds the book: `make docs`."""

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
WORK = Path(os.environ.get("NEUROC_BOOK_WORK", ROOT / "target" / "docs" / "work"))

sys.path.insert(0, str(HERE / "_ext"))

import neuroc  # noqa: E402

project = "neuroc"
author = "the authors of neuroc"
copyright = "the authors of neuroc"
version = release = neuroc.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "neuro_lexer",
    "shown_examples",
    "repository_links",
    "whole_api",
]
exclude_patterns = ["_ext", "_kernel", "gallery/cards.md", "requirements.txt"]

# Everything that is shown as output is made while the book is built; a cell that fails stops the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_merge_streams = True

# The kernel starts in a fresh folder that has `examples` in it (_kernel/startup/folder.py), and finds the command `neuroc`.
_profile = WORK / "ipython" / "profile_default"
shutil.rmtree(WORK, ignore_errors=True)
shutil.copytree(HERE / "_kernel", _profile)
os.environ["IPYTHONDIR"] = str(WORK / "ipython")
os.environ["NEUROC_BOOK_WORK"] = str(WORK)
os.environ["NEUROC_BOOK_ROOT"] = str(ROOT)
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nitpicky = True
# Types of other packages, whose documentation is not looked up.
nitpick_ignore_regex = [
    (r"py:.*", r"(np|numpy|npt|NDArray|ArrayLike|os|Path|pathlib|collections|types|typing|Any|Mapping|Iterator|Table|T|Time)\b.*"),
    # Where something of the package is defined is not where it is documented.
    (r"py:.*", r"neuroc\.\w+\..*"),
    (r"py:class", r"[A-Z]\w*|optional|array"),
]
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "neuroc"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_exclude = ".linenos, .gp, .go"
