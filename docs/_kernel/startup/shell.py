"""`%%bash` cells show what a terminal would, errors among the rest, all at once; a command that fails fails the cell."""

import subprocess

from IPython import get_ipython


def _bash(line, cell):
    ran = subprocess.run(["bash", "-e", "-c", cell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.stdout:
        print(ran.stdout, end="")
    if ran.returncode != 0:
        raise RuntimeError(f"exit code {ran.returncode}")


get_ipython().register_magic_function(_bash, magic_kind="cell", magic_name="bash")
