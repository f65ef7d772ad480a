"""How many operations a program of XLA starts on its device, counted in the text that --xla_dump_to leaves.

What starts something is every instruction that is left after XLA has fused them, but for those that only name memory.
Loops count as often as they turn; where XLA does not know that, the host asks the device in every turn, and it is told.
"""
import dataclasses
import pathlib
import re

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
        "add-dependency", "opt-barrier", "copy-done", "async-done", "async-update"}
HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.\-]+ = (.*)$")


@dataclasses.dataclass
class Count:
    """Of one call."""
    launches: float = 0     # everything that is started
    kernels: float = 0      # of it, what is no copy
    unknown: int = 0        # loops whose turns XLA does not know; they count once

    def add(self, other, times=1):
        self.launches += times * other.launches
        self.kernels += times * other.kernels
        self.unknown += other.unknown


def opcode(rest):
    """The name of an operation behind its type, which may be a tuple."""
    depth = 0
    for at, c in enumerate(rest):
        depth += (c in "([{") - (c in ")]}")
        if c == " " and depth == 0:
            return re.match(r"[\w\-]+", rest[at + 1:]).group(0)
    return ""


def computations(text):
    """Lines of instructions by computation, and the entry's name."""
    found, entry, name = {}, None, None
    for line in text.splitlines():
        head = HEAD.match(line)
        if head and " = " not in line.split("->")[0].split("(")[0]:
            name = head.group(2)
            entry = name if head.group(1) else entry
            found[name] = []
        elif line.startswith("}"):
            name = None
        elif name is not None and INSTRUCTION.match(line):
            found[name].append(INSTRUCTION.match(line).group(1))
    return found, entry


def count(text):
    """What one call of a module starts."""
    found, entry = computations(text)

    def called(rest, key):
        return re.search(key + r"=%?([\w.\-]+)", rest)

    def of(name):
        total = Count()
        for rest in found[name]:
            op = opcode(rest)
            if op in FREE:
                continue
            if op == "while":
                turns = re.search(r'known_trip_count"?:\{"n":"(\d+)"', rest)
                body = of(called(rest, "body").group(1))
                if turns:
                    total.add(body, int(turns.group(1)))
                else:
                    total.add(body)
                    total.add(of(called(rest, "condition").group(1)))
                    total.unknown += 1
            elif op == "call":
                total.add(of(called(rest, "to_apply").group(1)))
            elif op == "conditional":
                names = re.search(r"branch_computations=\{([^}]*)\}", rest)
                names = re.findall(r"[\w.\-]+", names.group(1)) if names else [
                    called(rest, key).group(1) for key in ("true_computation", "false_computation")]
                total.add(max((of(each) for each in names), key=lambda c: c.launches))
            else:
                total.launches += 1
                total.kernels += not op.startswith("copy")
        return total

    return of(entry)


def dumped(folder, name):
    """The last module of this name in a folder of dumps, after all optimizations."""
    files = sorted(pathlib.Path(folder).glob(f"module_*.{name}.*after_optimizations.txt"))
    if not files:
        raise FileNotFoundError(f"XLA has left no module {name} in {folder}")
    return files[-1].read_text()


def graphs(folder, name):
    """CUDA graphs of that module, by the sequence that the GPU's executor gets; none where there is no such file."""
    files = sorted(pathlib.Path(folder).glob(f"module_*.{name}.thunk_sequence*.txt"))       # the last is that after all passes
    return files[-1].read_text().count("kCommandBuffer") if files else None
