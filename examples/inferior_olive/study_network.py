"""The networks of Landsmeer et al. 2024, number for number: NumPy's legacy generator, drawn from as in the study.

    python study_network.py stress [--to stress]             the 64 cells of the stress test, for stress.neuro
    python study_network.py network --side 9 --to FOLDER     cells.csv and edges.csv of a network of any size

`stress/` is kept beside this file, so nobody needs this script (and NumPy) to run an experiment. The peers in
benches/peers take their networks from here too.
"""
import argparse
import csv
import pathlib

import numpy as np

DEGREE, R_MAX, WIDTH, SEED = 10, 4, 4, 42


def offsets(side):
    """Half of the neighbourhood and the chance of each offset."""
    r_max = R_MAX if R_MAX <= side / 2 else side // 2
    reach = range(-r_max, r_max + 1)
    found = [(x, y, z) for x in reach for y in reach for z in reach
             if 0 < x * x + y * y + z * z < r_max * r_max and (z, y, x) < (0, 0, 0)]
    found = np.array(found)
    squares = (found ** 2).sum(axis=1)
    shells, shell, members = np.unique(squares, return_inverse=True, return_counts=True)
    radius = np.sqrt(shells)
    guarded = np.concatenate([[0.0], radius, [r_max]])
    weight = np.exp(-(radius / WIDTH) ** 2) * 0.5 * (guarded[2:] - guarded[:-2])
    chance = (weight / members)[shell]
    return found, chance / chance.sum()


def network(side, seed=SEED):
    """Initial potentials [3, N] (soma, axon, dendrite) and the directed junctions: sources, targets."""
    cells = side ** 3
    random = np.random.RandomState(seed)
    potentials = np.array([random.normal(-60, 3, cells) for _ in range(3)])
    around, chance = offsets(side)
    wanted = cells * DEGREE // 2
    counts = np.floor(chance * wanted + 0.5).astype(int)
    counts[-1] = max(0, wanted - counts[:-1].sum())
    here, there = [], []
    for (x, y, z), count in zip(around, counts):
        if count == 0:
            continue
        a = random.randint(cells, size=1) if count == 1 else random.choice(cells, count, replace=False)
        here.append(a)
        there.append((a % side + x) % side + side * ((a // side % side + y) % side)
                     + side * side * ((a // side ** 2 + z) % side))
    here, there = np.concatenate(here).astype(np.int32), np.concatenate(there).astype(np.int32)
    return potentials, np.concatenate([there, here]), np.concatenate([here, there])


def stress(cells=64, seed=SEED):
    """Calcium conductances (mS/cm2) and, for each of ten pulses, the current into each cell (uA/cm2)."""
    random = np.random.RandomState(seed)
    g_cal = (0.5 + 0.9 * random.rand(cells)).astype(np.float32).astype(float)
    pulses = np.zeros((10, cells))
    for pulse in pulses:
        chosen = random.randint(cells, size=cells // 3)
        pulse[chosen] = random.normal(10, 3, cells // 3)
    return g_cal, pulses


def write_csv(path, header, columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([x.item() for x in row] for row in zip(*columns))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", choices=["stress", "network"])
    ap.add_argument("--side", type=int, default=4)
    ap.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "stress")
    a = ap.parse_args()
    if a.what == "stress" and a.side != 4:
        ap.error("the stress test has a side of 4")
    if a.side < 4:
        ap.error("the study's networks have a side of 4 or more")
    potentials, source, target = network(a.side)
    header, columns = ["soma", "axon", "dend"], list(potentials)
    if a.what == "stress":
        g_cal, pulses = stress()
        header += ["g_cal", *(f"p{k}" for k in range(1, 11))]
        columns += [g_cal, *pulses]
    a.to.mkdir(parents=True, exist_ok=True)
    write_csv(a.to / "cells.csv", header, columns)
    write_csv(a.to / "edges.csv", ["src", "tgt"], [source, target])


if __name__ == "__main__":
    main()
