"""Run neuroc and its peers alternately on the inferior olive, on one core, and print a markdown table for each network.

    python compare_olive.py [--neuroc PATH/TO/neuroc] [--python NAME=PATH ...] [--sides 20,50,100] [--rounds 3]
                            [--engine native|xla]

NAME is jax or tensorflow; the engine is neuroc's, on this processor. All contestants get the same network: the
study's, drawn here, as edge list and initial potentials. The peers verify themselves against known answers in the first round, and every contestant's somata must be
after the timed steps where neuroc's native engine has them in double precision, or no time is printed for it.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from compare import alternate, interpreters, pin, table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples" / "inferior_olive"
PEERS = [                                       # label, script, arguments
    ("JAX", "jax", []), ("JAX, as printed", "jax", ["--form", "study"]),
    ("TensorFlow", "tensorflow", []), ("TensorFlow, as printed", "tensorflow", ["--form", "study"]),
]
CLOSE = {"f64": 1e-6, "f32": 0.02}              # mV: how far any cell may be from neuroc in double precision


def replaced(text, pattern, by):
    text, count = re.subn(pattern, by, text, flags=re.MULTILINE)
    assert count == 1, f"{count} times {pattern}"
    return text


def prepare(folder, side, connected, steps):
    """Writes the network and the example's model with it; gives the model's path."""
    import numpy as np
    from olive import study_network
    if not (folder / "network.npz").exists():
        potentials, src, tgt = study_network.network(side)
        np.savez(folder / "network.npz", potentials=potentials, src=src, tgt=tgt)
        np.savez(folder / "edges.npz", src=src, tgt=tgt)
        for name, values in zip(("soma", "axon", "dend"), potentials):
            np.save(folder / f"{name}.npy", values)
        for name in ("olive_cell.neuro", "inferior_olive.neuro"):
            (folder / name).write_text((EXAMPLES / name).read_text())
    name = "inferior_olive.neuro" if connected else "unconnected.neuro"
    text = (EXAMPLES / name).read_text()
    inits = "\n".join(f'    init io.{x}.v = file("{x}.npy") * 1 mV' for x in ("soma", "axon", "dend"))
    text = replaced(text, r"^ *init io\.\{soma, axon, dend\}.*$", inits)
    text = replaced(text, "param side = 4.*$", f"param side = {side}")
    text = replaced(text, "every 1 ms", f"every {steps * 0.025:g} ms")
    if connected:
        text = replaced(text, r"rule = torus_radial\(.*\)", 'rule = edges("edges.npz")')
    path = folder / ("connected.neuro" if connected else "apart.neuro")
    path.write_text(text)
    return path


def chosen(engine):
    """neuroc's options for an engine."""
    return {"native": ["--threads", "1"], "xla": ["--engine", "xla", "--device", "cpu"]}[engine]


def potentials(neuroc, model, precision, steps, folder, engine="native"):
    """Somata after the steps, by neuroc."""
    import numpy as np
    out = folder / "neuroc.npz"
    subprocess.run([neuroc, "run", model, "--precision", precision, *chosen(engine), "-o", out, "--quiet",
                    "--duration", f"{steps * 0.025:g}ms"], check=True)
    with np.load(out) as result:
        return result["io.soma.v"][-1].astype(float)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", default=str(ROOT / "target" / "release" / "neuroc"))
    ap.add_argument("--engine", choices=("native", "xla"), default="native", help="neuroc's engine")
    ap.add_argument("--python", action="append", default=[], metavar="[NAME=]PATH")
    ap.add_argument("--only", help="comma-separated names of peers")
    ap.add_argument("--sides", default="20,50,100", help="cells are side^3")
    ap.add_argument("--precision", default="f32,f64")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--repeat", type=int, default=3)
    ap.add_argument("--work", type=float, default=3.2e7, help="cells x steps of one timed run, about")
    ap.add_argument("--core", type=int, default=None)
    a = ap.parse_args()
    try:
        import numpy                                                    # noqa: F401
    except ImportError:
        ap.error("NumPy is missing: run this with the Python of a peer")
    only = set(a.only.split(",")) if a.only else {name for _, name, _ in PEERS}
    if only - {name for _, name, _ in PEERS}:
        ap.error(f"no such peer in {a.only}")
    if set(a.precision.split(",")) - set(CLOSE):
        ap.error(f"no such precision in {a.precision}")
    core = pin(a)
    fine = True
    for side in map(int, a.sides.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            for connected in (False, True):
                fine &= compare(a, pathlib.Path(folder), side, connected, [p for p in PEERS if p[1] in only], core)
    sys.exit(0 if fine else 1)


def compare(a, folder, side, connected, peers, core):
    """Prints the table of one network; whether neuroc ran."""
    import numpy as np
    steps = max(40, round(a.work / side ** 3 / 40) * 40)
    model = prepare(folder, side, connected, steps)
    truth = potentials(a.neuroc, model, "f64", steps, folder)
    default, by_name = interpreters(a)
    contestants, finals = [], []
    for precision in a.precision.split(","):
        far = abs(potentials(a.neuroc, model, precision, steps, folder, a.engine) - truth).max()
        if not far < CLOSE[precision]:
            sys.exit(f"neuroc {precision} is {far} mV from neuroc f64")
        contestants.append(("neuroc", precision, [
            a.neuroc, "bench", str(model), "--precision", precision, *chosen(a.engine), "--steps", str(steps),
            "--repeat", str(a.repeat), "--json"]))
        finals.append(None)
        for label, name, args in peers:
            finals.append(folder / f"{len(finals)}.npy")
            contestants.append((label, precision, [
                by_name.get(name, default), str(HERE / f"olive_{name}.py"), "--precision", precision,
                "--side", str(side), "--steps", str(steps), "--repeat", str(a.repeat), "--core", str(core), "--network",
                str(folder / "network.npz"), "--final", str(finals[-1]), *args, *([] if connected else ["--apart"])]))
    results = alternate(contestants, 1)
    for (_, precision, command), rows, final in zip(contestants, results, finals):
        if final is None or "error" in rows[0]:
            continue
        far = abs(np.load(final) - truth).max()
        if not far < CLOSE[precision]:
            rows[0] = {"error": f"wrong: {far:.2g} mV from neuroc"}
        command.append("--trust")                                       # it has shown that it is right
    alive = [i for i, rows in enumerate(results) if "error" not in rows[0]]
    for i, rows in zip(alive, alternate([contestants[i] for i in alive], a.rounds, 1)):
        results[i] += rows
    print(f"\nInferior olive, {'connected' if connected else 'unconnected'}, {side ** 3} cells, {steps} steps, "
          f"dt 0.025 ms, one thread on core {core}, neuroc's engine {a.engine}, {a.rounds} rounds, alternating.\n")
    return table(contestants, results)


if __name__ == "__main__":
    main()
