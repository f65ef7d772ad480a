#!/usr/bin/env python3
"""The connected inferior olive on a GPU, f32: neuroc and JAX in turn on the same device, with the same XLA.

    gpu_olive.py                    on an NVIDIA GPU; fetches what it needs (some GB) into target/peers
    gpu_olive.py --device cpu       the same on the processor, at small sizes: does the script work?
    gpu_olive.py --device h100      no times: what XLA's compiler for GPUs makes of it for an H100 that need not be here
    gpu_olive.py --device h100 --model FILE     the same of neuroc's program for another model

It prints a table for each size: time per step, real-time factor, launches per step, the bytes that a step must move beside what the
device's memory can move in that time, and peak memory. neuroc is tried with each form of gathers and several lengths of its straight
lines, JAX with each form of junctions and several lengths of its loops; the best of each go on in turns, and the best time counts.
Nobody's time is printed whose somata are not where neuroc's native engine has them in double precision.
"""
import argparse
import copy
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DT = 0.025                                      # ms
FUSED = 400                                     # steps in one call of JAX, and the steps behind which all are compared
GOAL = 1e5                                      # cells, connected, in real time
WHEELS = {"cuda": "jax[cuda13]==0.10.2", "cpu": "jax==0.10.2"}
PLUGINS = {"cuda": "jax_plugins/xla_cuda13/xla_cuda_plugin.so"}
SIDES = {"cuda": "22,47,50,100", "cpu": "8,12", "h100": "22,47"}
GATHERS = ("padded", "rows", "shifts")
UNROLLS = {"cuda": (1, 2, 4, 8), "cpu": (1, 4), "h100": (1, 2, 4, 8)}
JUNCTIONS = ("scatter", "sorted", "padded")
# XLA's flags for GPUs that are tried on the best forms. neuroc asks for two buffers by itself.
TWO_BUFFERS = "--xla_gpu_enable_while_loop_unrolling=WHILE_LOOP_UNROLLING_DOUBLE_BUFFER"
ONE_GRAPH = "--xla_gpu_enable_command_buffer=+WHILE --xla_gpu_graph_min_graph_size=1"
FLAGS = {"neuroc": {"one graph": ONE_GRAPH}, "JAX": {"two buffers": TWO_BUFFERS, "two buffers, one graph": f"{TWO_BUFFERS} {ONE_GRAPH}"}}
# What XLA has to know of an H100 (SXM, 80 GB) to compile for it; from NVIDIA's data sheet and CUDA's programming guide
H100 = """
gpu_device_info {
  name: "NVIDIA H100 80GB HBM3" device_vendor: "NVIDIA Corporation" platform_version: "Compute Capability 9.0"
  cuda_compute_capability { major: 9 } core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 device_memory_size: 84942979072 device_address_bits: 64
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0" dnn_version: "9.10.0"
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 } device_description_str: "NVIDIA H100 80GB HBM3"
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


# --------------------------------------------------------------------------------------------------- what is needed


def environment(a):
    """The Python that has JAX for the device: as told, or one that is made."""
    if a.python:
        return pathlib.Path(a.python)
    wheel = WHEELS["cpu" if a.device == "cpu" else "cuda"]
    folder = ROOT / "target" / "peers" / ("jax-cpu" if a.device == "cpu" else "jax-cuda13")
    python = folder / "bin" / "python"
    if subprocess.run([python, "-c", "import jax, numpy"], capture_output=True).returncode if python.exists() else True:
        say(f"installing {wheel} into {folder}")
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy", wheel])
        if done.returncode:
            sys.exit(f"pip cannot install {wheel}")
    return python


def plugin(a, python):
    """neuroc's options for the device. On a GPU it takes the plugin that JAX takes, so that both have one XLA."""
    options = ["--engine", "xla", "--precision", "f32", "--device", "cuda" if a.device == "cuda" else "cpu"]
    if a.device != "cuda":
        done = subprocess.run([a.neuroc, "devices", "--install", "cpu"], stdout=subprocess.DEVNULL)
        return options if done.returncode == 0 else sys.exit("neuroc finds no plugin for the processor")
    ask = "import sysconfig; print(sysconfig.get_paths()['platlib'])"
    packages = pathlib.Path(subprocess.run([python, "-c", ask], capture_output=True, text=True).stdout.strip())
    if not (packages / PLUGINS["cuda"]).exists():
        say("JAX's packages have no plugin for CUDA 13; neuroc fetches its own")
        done = subprocess.run([a.neuroc, "devices", "--install", "cuda"], stdout=subprocess.DEVNULL)
        return options if done.returncode == 0 else sys.exit("neuroc cannot install a plugin for CUDA")
    return [*options, "--plugin", str(packages / PLUGINS["cuda"])]


def answered(command, **environment):
    """The JSON that a command printed, or an error's last words."""
    env = {**os.environ, **environment}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{") and done.returncode == 0:
            return json.loads(line)
    return {"error": (done.stderr or done.stdout).strip()[-400:] or f"exit code {done.returncode}"}


# ------------------------------------------------------------------------------------------------------ contestants


class Contestant:
    """A program in one form, and what it has shown."""

    def __init__(self, tool, form, module):
        self.tool, self.form, self.module, self.flags = tool, form, module, ""
        self.times, self.error, self.told, self.launches, self.graphs = [], None, {}, None, None

    def with_flags(self, name, flags):
        """The same with more of XLA's flags, not yet run."""
        other = copy.copy(self)
        other.form, other.flags = f"{self.form}, {name}", flags
        other.times, other.error, other.told, other.launches, other.graphs = [], None, {}, None, None
        return other

    def answered(self, command, more=""):
        """What a command prints that runs with this contestant's flags."""
        flags = " ".join(part for part in (os.environ.get("XLA_FLAGS"), self.flags, more) if part)
        return answered(command, **({"XLA_FLAGS": flags} if flags else {}))

    def seconds(self):
        """Of a step, the best."""
        return min(self.times)

    def fail(self, why):
        self.error = why.splitlines()[-1] if why else "failed"
        say(f"{self.tool}, {self.form}: {why}")


class Neuroc(Contestant):
    def __init__(self, a, model, options, gather, unroll):
        form = f"{gather}, {unroll} in a line" if gather else f"{unroll} in a line"
        super().__init__("neuroc", form, "*_stretch")
        self.options = [*options, *(["--gather", gather] if gather else []), "--unroll", str(unroll)]
        self.neuroc, self.model = a.neuroc, model

    def run(self, steps, repeat, flags=""):
        out = self.answered([self.neuroc, "bench", self.model, *self.options, "--fuse", "40", "--steps", steps,
                             "--repeat", repeat, "--json"], flags)
        if "error" not in out:
            out = {**out, "peak_bytes": (out["xla"]["memory"] or {}).get("peak_bytes_in_use"),
                   "device": out["xla"]["device"], "steps_of_call": out["steps_per_visit"]}
        return out

    def somata(self, folder):
        import numpy as np
        out = folder / "device.npz"
        done = self.answered([self.neuroc, "run", self.model, *self.options, "-o", out, "--json",
                              "--duration", f"{FUSED * DT:g}ms"])
        if "error" in done:
            raise RuntimeError(done["error"])
        with np.load(out) as result:
            return result["io.soma.v"][-1].astype(float)


class Jax(Contestant):
    def __init__(self, a, python, folder, side, junctions, unroll):
        super().__init__("JAX", f"{junctions}, {unroll} in a turn", "jit_fused")
        self.command = [python, HERE / "olive_jax.py", "--platform", "cuda" if a.device == "cuda" else "cpu", "--precision", "f32",
                        "--side", side, "--network", folder / "network.npz", "--fused", FUSED, "--junctions", junctions,
                        "--unroll", unroll, "--trust"]
        self.final = folder / "jax.npy"

    def run(self, steps, repeat, flags=""):
        out = self.answered([*self.command, "--steps", steps, "--repeat", repeat], flags)
        return out if "error" in out else {**out, "steps_of_call": FUSED}

    def somata(self, _):
        import numpy as np
        out = self.answered([*self.command, "--steps", FUSED, "--repeat", 1, "--final", self.final])
        if "error" in out:
            raise RuntimeError(out["error"])
        return np.load(self.final)


def time_once(c, steps, repeat):
    out = c.run(steps, repeat)
    if "error" in out:
        return c.fail(out["error"])
    c.told = out
    c.times.append(out["run_s"] / steps)
    say(f"  {c.tool}, {c.form}: {c.times[-1] * 1e6:.2f} us")
    return None


def count_launches(a, c, python, folder):
    """Runs it briefly with XLA's dumps on, and counts. For a GPU that is not here, its program on the processor is compiled anew."""
    import xla_launches
    # Another folder each time: neuroc keeps what it has compiled with the same flags, and XLA leaves nothing of what it does not compile.
    dump, here = pathlib.Path(tempfile.mkdtemp(dir=folder)), a.device != "h100"
    out = (c if here else c.with_flags("", "")).run(FUSED, 1, f"--xla_dump_to={dump}")
    if "error" in out:
        return c.fail(out["error"])
    if not here:
        module = sorted(dump.glob(f"module_*.{c.module}.before_optimizations.txt"))[-1]
        flags = (f"--xla_dump_to={dump / 'gpu'}", "--xla_gpu_autotune_level=0", TWO_BUFFERS if c.tool == "neuroc" else "", c.flags)
        env = {**os.environ, "XLA_FLAGS": " ".join(flags), "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [python, HERE / "gpu_olive.py", "--compile", module, *(["--plugin", a.plugin] if a.plugin else [])]
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        if done.returncode:
            return c.fail(done.stderr.strip()[-400:])
        dump = dump / "gpu"
    c.told = c.told or out
    c.launches = xla_launches.count(xla_launches.dumped(dump, c.module)), out["steps_of_call"]
    c.graphs = xla_launches.graphs(dump, c.module)
    say(f"  {c.tool}, {c.form}: {c.launches[0].launches / c.launches[1]:.2f} launches a step")
    return None


def compile_for_h100(module, library):
    """Compiles a module, as XLA's text before its optimizations, for an H100; XLA leaves its dumps. This is what JAX 0.10.2 has
    inside, and no interface that it keeps."""
    import jax
    from jax._src import xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir
    from jax.experimental import topologies
    from jaxlib import _hlo, _jax
    library = library or pathlib.Path(jax.__file__).parents[1] / PLUGINS["cuda"]
    xla_bridge.register_plugin("cuda", library_path=str(library))
    topology = topologies.get_topology_desc("", platform="cuda", target_config=H100, topology="1x1x1")
    hlo = _hlo.hlo_module_from_text(pathlib.Path(module).read_text())
    text = _jax.mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto())
    device = topology.devices[0]
    with mlir.make_ir_context():
        program = ir.Module.parse(text)
        device.client.compile(program, xla_client.DeviceList((device,)), xla_client.CompileOptions())


# ----------------------------------------------------------------------------------------------------------- a size


def contestants(a, python, options, folder, model, side):
    ours = [Neuroc(a, model, options, gather, unroll) for gather in a.gathers for unroll in a.unrolls]
    peers = [Jax(a, python, folder, side, junctions, unroll) for junctions in a.junctions for unroll in a.unrolls]
    return ours, peers


def compare(a, python, options, folder, side, machine):
    """One size: everything once, the best of each in turns, and the table."""
    from compare_olive import CLOSE, prepare
    cells = side ** 3
    model = prepare(folder, side, True, FUSED)
    ours, peers = contestants(a, python, options, folder, model, side)
    if a.device == "h100":
        flagged = [c.with_flags(*flags) for c in ours + peers if c.form.startswith("padded, 4") for flags in FLAGS[c.tool].items()]
        for c in ours + peers + flagged:
            count_launches(a, c, python, folder)
        return table(a, side, ours + peers + flagged, machine, FUSED)
    truth = truth_of(a, model, side, folder)
    budget = {"cuda": 4e9, "cpu": 4e6}[a.device]
    steps = a.steps or int(min(max(budget / cells, FUSED), 100 * FUSED)) // FUSED * FUSED
    say(f"{cells} cells, {steps} steps")
    kept = []
    for group in (ours, peers):
        for c in group:
            time_once(c, steps, 1)
        best = sorted((c for c in group if not c.error), key=Contestant.seconds)[:a.keep]
        flagged = [c.with_flags(*flags) for c in best for flags in FLAGS[c.tool].items()] if a.device == "cuda" else []
        for c in flagged:
            time_once(c, steps, 1)
        group += flagged
        alive = sorted((c for c in group if not c.error), key=Contestant.seconds)
        for c in alive[:a.keep]:
            try:
                far = abs(c.somata(folder) - truth).max()
            except RuntimeError as error:
                c.fail(str(error))
                continue
            if far < CLOSE["f32"]:
                kept.append(c)
            else:
                c.fail(f"wrong: {far:.2g} mV from neuroc in double precision")
    for _ in range(a.rounds):
        for c in kept:
            if not c.error:
                time_once(c, steps, a.repeat)
    for c in kept:
        if not c.error:
            count_launches(a, c, python, folder)
    fine = table(a, side, ours + peers, machine, steps, kept)
    alive = [c for c in kept if not c.error]
    best = {tool: min((c for c in alive if c.tool == tool), key=Contestant.seconds, default=None) for tool in ("neuroc", "JAX")}
    if all(best.values()):
        verdict(cells, best["neuroc"], best["JAX"], machine)
    return fine and all(best.values())


def count_other(a, python, options, machine):
    """Launches of another model's steps, compiled only; whether that went well."""
    ours = [Neuroc(a, a.model, options, None, unroll) for unroll in a.unrolls]
    with tempfile.TemporaryDirectory() as folder:
        for c in ours:
            count_launches(a, c, python, pathlib.Path(folder))
    print(f"\n{pathlib.Path(a.model).stem}, f32, {machine['name']}, compiled only\n")
    print("| form | launches per step | loops that ask the host |\n|---|---|---|")
    for c in ours:
        count, of = c.launches or (None, 1)
        print(f"| {c.form} | {c.error or f'{count.launches / of:.2f}'} | {'' if c.error else count.unknown} |")
    return not any(c.error for c in ours)


def truth_of(a, model, side, folder):
    """Somata by neuroc's native engine in double precision; kept between runs if a folder for them is named, since the engine needs Rust."""
    import numpy as np
    from compare_olive import potentials
    kept = a.truth and pathlib.Path(a.truth) / f"olive_{side}.npy"
    if kept and kept.exists():
        return np.load(kept)
    truth = potentials(a.neuroc, model, "f64", FUSED, folder)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, truth)
    return truth


def bytes_of_step(folder, cells):
    """What a step must move: 14 states there and back, and for each junction a source and its voltage."""
    import numpy as np
    with np.load(folder / "network.npz") as network:
        return cells * 14 * 4 * 2 + len(network["src"]) * 8


def table(a, side, all_of_them, machine, steps, kept=()):
    """Prints a size; whether all could be run."""
    cells = side ** 3
    print(f"\n{cells} cells, connected, f32, {machine['name']}, "
          + (f"best of {a.rounds + 1} rounds of {steps} steps, in turn\n" if kept else "compiled only\n"))
    print("| tool | form | us per step | real-time factor | launches per step | of them kernels | graphs in the program | "
          "bandwidth used | peak memory |")
    print("|---|---|---|---|---|---|---|---|---|")
    for c in sorted(all_of_them, key=lambda c: (c.tool != "neuroc", min(c.times, default=float("inf")))):
        if c.error:
            print(f"| {c.tool} | {c.form} | {c.error} | | | | | | |")
            continue
        cell = [f"{c.seconds() * 1e6:.2f}", f"{DT / 1e3 / c.seconds():.2f}"] if c.times else ["", ""]
        if c.launches:
            count, of = c.launches
            host = f" and {count.unknown} loops that ask the host" if count.unknown else ""
            cell += [f"{count.launches / of:.2f}{host}", f"{count.kernels / of:.2f}", "" if c.graphs is None else str(c.graphs)]
        else:
            cell += ["", "", ""]
        moved = machine.get("bytes_of_step", {}).get(side)
        share = moved / c.seconds() / machine["bytes_per_s"] if moved and c.times else None
        peak = c.told.get("peak_bytes")
        cell += ["" if share is None else f"{share:.0%}", f"{peak / 2**20:.0f} MiB" if peak else ""]
        print(f"| {c.tool} | {c.form} | " + " | ".join(cell) + " |")
    sys.stdout.flush()
    return not any(c.error for c in all_of_them if c in kept)


def verdict(cells, ours, theirs, machine):
    """In words: real time or not, against JAX, and what the limit is."""
    step, launches = ours.seconds(), ours.launches[0].launches / ours.launches[1]
    ratios = [y / x for x, y in zip(ours.times[1:], theirs.times[1:])] or [theirs.seconds() / step]
    moved = machine["bytes_of_step"][round(cells ** (1 / 3))] / machine["bytes_per_s"]
    started = launches * machine["turn_s"]
    limit = max(("moving the states and junctions", moved), ("starting kernels", started), key=lambda part: part[1])
    print(f"\nneuroc takes {step * 1e6:.2f} us a step: {DT / 1e3 / step:.2f} times real time; JAX / neuroc "
          f"{statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}). Moving the bytes takes at least {moved * 1e6:.2f} us, "
          f"starting {launches:.2f} kernels and copies {started * 1e6:.2f} us ({machine['turn_s'] * 1e6:.2f} us each in a loop of JAX's): "
          + (f"of what was measured, {limit[1] / step:.0%} is {limit[0]}; the rest is arithmetic, gathering and waiting."
             if limit[1] < step else f"{limit[0]} is the limit."))
    if cells >= GOAL and step > DT / 1e3:
        print("Real time is missed.")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--device", choices=tuple(SIDES), default="cuda")
    ap.add_argument("--neuroc", default=str(ROOT / "target" / "release" / "neuroc"))
    ap.add_argument("--python", help="a Python with JAX for the device, and NumPy, instead of one that is made")
    ap.add_argument("--plugin", help="XLA's plugin for CUDA, instead of JAX's (with --device h100)")
    ap.add_argument("--sides", help="cells are side^3")
    ap.add_argument("--model", help="count the launches of this model instead (with --device h100)")
    ap.add_argument("--gathers", default=",".join(GATHERS), help="neuroc's forms of gathers")
    ap.add_argument("--junctions", default=",".join(JUNCTIONS), help="JAX's forms of junctions")
    ap.add_argument("--unrolls", help="steps in a line or in a turn, for both")
    ap.add_argument("--truth", help="folder in which the native engine's somata are kept between runs, for a machine without Rust")
    ap.add_argument("--rounds", type=int, default=5, help="of the best, in turn")
    ap.add_argument("--repeat", type=int, default=3, help="timed runs in a round")
    ap.add_argument("--keep", type=int, default=2, help="forms of each tool that go on")
    ap.add_argument("--steps", type=int, help=f"a multiple of {FUSED}")
    ap.add_argument("--compile", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.compile:
        return compile_for_h100(a.compile, a.plugin)
    if a.model and a.device != "h100":
        ap.error("--model goes with --device h100")
    if a.steps and a.steps % FUSED:
        ap.error(f"--steps must be a multiple of {FUSED}")
    if not pathlib.Path(a.neuroc).exists():
        ap.error(f"{a.neuroc} is missing: `cargo build --release`, or say where it is with --neuroc")
    python = environment(a)
    try:
        import numpy                                                    # noqa: F401
    except ImportError:
        if os.environ.get("NEUROC_PEERS_PYTHON"):
            raise
        os.environ["NEUROC_PEERS_PYTHON"] = str(python)
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    a.gathers, a.junctions = a.gathers.split(","), a.junctions.split(",")
    a.unrolls = [int(n) for n in a.unrolls.split(",")] if a.unrolls else UNROLLS[a.device]
    options = plugin(a, python)
    if a.device == "h100":
        machine = {"name": "an H100 that need not be here"}
    else:
        small = ["--megabytes", "64", "--launches", "200"] if a.device == "cpu" else []
        machine = answered([python, HERE / "device_jax.py", "--platform", a.device, *small])
        if "error" in machine:
            sys.exit(f"JAX does not run on this device: {machine['error']}")
        machine["name"] = machine["device"]
        print(f"{machine['name']}: {machine['bytes_per_s'] / 1e9:.0f} GB/s in order, {machine['turn_s'] * 1e6:.2f} us for a turn of "
              f"a loop with one small kernel (JAX {machine['jax']})")
    if a.model:
        return sys.exit(0 if count_other(a, python, options, machine) else 1)
    machine["bytes_of_step"] = {}
    fine = True
    for side in map(int, (a.sides or SIDES[a.device]).split(",")):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            from compare_olive import prepare
            prepare(folder, side, True, FUSED)
            machine["bytes_of_step"][side] = bytes_of_step(folder, side ** 3)
            fine &= compare(a, python, options, folder, side, machine)
    return sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
