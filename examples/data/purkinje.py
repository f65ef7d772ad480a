"""Makes purkinje.swc: no reconstruction, but a cell with the proportions of a small Purkinje cell.

A soma of 27 um, a main dendrite, smooth dendrites that fork, all in one plane (as in De Schutter and Bower, J Neurophysiol 71:375, 1994, whose cell
is far larger), and spiny branchlets of about 40 um along them. Types: 3 are the main and the smooth dendrites, 4 the branchlets.

    python3 examples/data/purkinje.py > examples/data/purkinje.swc
"""
import math
import random

SOMA, SMOOTH, SPINY = 1, 3, 4
rng = random.Random(11)
points = []


def add(kind, at, radius, parent):
    points.append((kind, at, radius, parent))
    return len(points)


def grow(kind, parent, at, angle, length, radii, step=12.0, bend=0.1):
    """A row of points in the plane; gives all of them with their places, and the direction at the end."""
    n = max(1, round(length / step))
    row = []
    for i in range(1, n + 1):
        angle += bend * rng.uniform(-1, 1)
        at = (at[0] + length / n * math.cos(angle), at[1] + length / n * math.sin(angle))
        parent = add(kind, at, radii[0] + (radii[1] - radii[0]) * i / n, parent)
        row.append((parent, at))
    return row, angle


def branchlet(parent, at, angle, forks):
    """A spiny branchlet, and two more at its end."""
    # A section begins as thick as what it begins at: so its first point is near.
    row, _ = grow(SPINY, parent, at, angle, 1.5, (0.6, 0.6), step=1.5, bend=0.0)
    row, angle = grow(SPINY, *row[-1], angle, rng.uniform(14, 24), (0.6, 0.5), step=8.0, bend=0.25)
    if forks > 0:
        for side in (-1, 1):
            branchlet(*row[-1], angle + side * rng.uniform(0.3, 0.6), forks - 1)


def smooth(parent, at, angle, order, length, radius):
    """A smooth dendrite with branchlets on both sides, and two more at its end."""
    row, angle = grow(SMOOTH, parent, at, angle, length * rng.uniform(0.8, 1.2), (radius, 0.8 * radius))
    for k, (point, place) in enumerate(row[:-1]):
        branchlet(point, place, angle + (-1) ** k * rng.uniform(0.9, 1.4), 1)
    if order > 0:
        for side in (-1, 1):
            smooth(*row[-1], angle + side * rng.uniform(0.35, 0.6), order - 1, 0.85 * length, 0.75 * radius)
    else:
        for side in (-1, 1):
            branchlet(*row[-1], angle + side * 0.4, 1)


def main():
    soma = add(SOMA, (0.0, 0.0), 13.5, -1)
    add(SOMA, (0.0, -13.5), 13.5, soma)
    add(SOMA, (0.0, 13.5), 13.5, soma)
    first = add(SMOOTH, (0.0, 13.5), 3.5, soma)
    row, angle = grow(SMOOTH, first, (0.0, 13.5), math.pi / 2, 40.0, (3.5, 3.0), bend=0.05)
    for side in (-1, 1):
        smooth(*row[-1], angle + side * 0.65, 2, 50.0, 2.0)

    print("# Not a reconstruction: made by purkinje.py.")
    for i, (kind, at, radius, parent) in enumerate(points, 1):
        print(i, kind, *(f"{x:.2f}" for x in at), "0.00", f"{radius:.2f}", parent)


main()
