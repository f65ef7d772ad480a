"""Links between the book and the repository, written so that they also lead somewhere where the files are read as they are.

Pages of the book include documents of the repository: their links lead to the same places from there. A link to a document that a page
includes leads to that page, one to any other file to a copy of it; a folder stays a name.
"""

import os
import re
from pathlib import Path


ROOT = Path(__file__).parents[2]

#: Documents of the repository, and the page that includes each.
PAGES = {
    "README.md": "index.md",
    "grammar/README.md": "reference/language.md",
    "python/README.md": "howto/python.md",
    "editors/README.md": "howto/editors.md",
    "benches/README.md": "speed/measuring.md",
    "benches/peers/README.md": "speed/peers.md",
    "benches/tpu.md": "speed/tpu.md",
    "examples/inferior_olive/README.md": "speed/olive.md",
}

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')


def moved(text, origin, page):
    """The text of a document for a page: `origin` is the document, `page` the page, both as paths from the root."""

    def link(match):
        image, words, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return match.group(0)
        file = os.path.normpath(os.path.join(os.path.dirname(origin), path))
        if not (ROOT / file).exists():
            raise ValueError(f"{origin} links to {target}, which is not there")
        if (ROOT / file).is_dir():
            return words
        goal = file
        if file in PAGES:
            goal = f"docs/{PAGES[file]}"
        new = os.path.relpath(goal, os.path.dirname(page))
        if goal == file and file.endswith(".md") and not file.startswith("docs/"):
            new = f"path:{new}"  # a document that is no page of the book
        return f"{image}[{words}]({new}{'#' + anchor if anchor else ''})"

    out, fenced, titles = [], False, 0
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if not fenced:
            # A page has one title; what else is a title in the document becomes a section.
            titles += line.startswith("# ")
            line = "#" + line if line.startswith("# ") and titles > 1 else line
            line = ANCHOR.sub(r"(\1)=", LINK.sub(link, line))
        out.append(line)
    return "\n".join(out)


def read(app, path, _parent, content):
    origin = (Path(app.srcdir) / path).resolve()
    if origin.is_relative_to(ROOT) and not origin.is_relative_to(ROOT / "docs") and origin.suffix == ".md":
        content[0] = moved(content[0], str(origin.relative_to(ROOT)), f"docs/{app.env.docname}.md")


def own(app, docname, content):
    content[0] = moved(content[0], f"docs/{docname}.md", f"docs/{docname}.md")


def setup(app):
    app.connect("include-read", read)
    app.connect("source-read", own)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
