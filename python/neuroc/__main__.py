"""The command `neuroc`, and `python -m neuroc`."""

import signal
import sys

from . import _core


def main() -> None:
    """Runs the command line of this process."""
    # The compiler has its own answer to Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_core.run_line(["neuroc", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
