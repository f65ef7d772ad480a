"""How long does a gradient take forward, and back? Prints a markdown table for squid axons with more and more free parameters.

    python benches/gradients.py [--neuroc PATH/TO/neuroc] [--rounds 3]

Both modes of `neuroc fit` take a few runs of 12 ms of `examples/squid_fit.neuro` with so many axons, on one thread; counted is the time of a run with its
gradient, the best of the rounds, which take turns.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FREE = ["Na.gbar=50..300mS/cm2", "K.gbar=10..80mS/cm2", "Leak.gbar=0.1..1mS/cm2", "Leak.erev=-60..-50mV", "Na.erev=40..60mV",
        "K.erev=-80..-70mV", "cm=0.8..1.2uF/cm2", "low.amplitude=2..4uA/cm2", "high.amplitude=5..7uA/cm2"]
PARAMETERS = [1, 2, 4, 6, 9]


def gradient(neuroc, model, parameters, mode):
    """Milliseconds for a run and its gradient."""
    command = [neuroc, "fit", str(model), "--quiet", "--json", "--mode", mode, "--iterations", "4", "--starts", "1", "--threads", "1",
               "--set", "Na.gbar=100mS/cm2", "--target", f"squid[0].axon.v={ROOT / 'examples/data/squid_fit.csv'}"]
    for free in FREE[:parameters]:
        command += ["--free", free]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    said = json.loads(done.stdout)
    return 1e3 * said["run_s"] / said["runs"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--neuroc", default=str(ROOT / "target/release/neuroc"))
    ap.add_argument("--rounds", type=int, default=3)
    a = ap.parse_args()
    text = (ROOT / "examples/squid_fit.neuro").read_text()
    print("| axons | parameters | back, ms | forward, ms | back / forward |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for cells in [1, 100, 1000]:
            model = pathlib.Path(folder, "squid.neuro")
            one = text.replace("population squid: Squid", f"population squid: Squid[{cells}]")
            model.write_text(one.replace("record squid.axon.v", "record squid[0].axon.v").split("fit {")[0])
            for parameters in PARAMETERS:
                times = {"reverse": [], "forward": []}
                for _ in range(a.rounds):
                    for mode, of_mode in times.items():
                        of_mode.append(gradient(a.neuroc, model, parameters, mode))
                back, forward = min(times["reverse"]), min(times["forward"])
                print(f"| {cells} | {parameters} | {back:.2f} | {forward:.2f} | {back / forward:.1f} |", flush=True)


if __name__ == "__main__":
    main()
