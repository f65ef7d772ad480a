"""The page of the Python API shows everything in `neuroc.__all__`: what it does not name itself stands at its end."""

import inspect
import re

import neuroc

MARK = "<!-- the rest -->"


def directive(name):
    thing = getattr(neuroc, name)
    if inspect.isclass(thing):
        return f".. autoclass:: neuroc.{name}()\n   :members:"
    return f".. autofunction:: neuroc.{name}" if callable(thing) else f".. autodata:: neuroc.{name}\n   :no-value:"


def complete(app, docname, content):
    if MARK not in content[0]:
        return
    shown = set(re.findall(r"neuroc\.(\w+)", content[0]))
    rest = [name for name in neuroc.__all__ if name not in shown and not name.startswith("_")]
    listed = "\n".join(directive(name) for name in rest)
    content[0] = content[0].replace(MARK, f"## More\n\n```{{eval-rst}}\n{listed}\n```" if rest else "")


def setup(app):
    app.connect("source-read", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
