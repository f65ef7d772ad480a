"""Each page of the book runs in a folder of its own, with the examples of the repository and the models of the book in it."""

import os
import tempfile

_folder = tempfile.mkdtemp(dir=os.environ["NEUROC_BOOK_WORK"])
os.chdir(_folder)
for _name in ("examples", "tests"):
    os.symlink(os.path.join(os.environ["NEUROC_BOOK_ROOT"], _name), _name)
for _from in ("models", "programs"):
    _folder = os.path.join(os.environ["NEUROC_BOOK_ROOT"], "docs", _from)
    for _name in os.listdir(_folder):
        os.symlink(os.path.join(_folder, _name), _name)
