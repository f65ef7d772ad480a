"""Writes edges.csv, the connections of the network that all simulators read: `python edges.py`."""
import numpy as np

cells, excitatory, each = 200, 160, 20
rng = np.random.default_rng(1)
with open("edges.csv", "w") as out:
    print("source,target,weight,delay", file=out)           # the weight in pA, the delay in ms
    for target in range(cells):
        for source in sorted(rng.choice(cells, each, replace=False)):
            if source != target:
                print(source, target, 60 if source < excitatory else -300, f"{rng.integers(5, 31) / 10:g}", sep=",", file=out)
