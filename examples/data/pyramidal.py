"""Makes pyramidal.swc: no reconstruction, but a cell with the proportions of a thick-tufted layer 5 pyramidal cell.

Lengths, diameters and numbers of branches are drawn around what is usual for such cells in rat neocortex (Larkman, J Comp Neurol
306:307, 1991), with fewer branches: four basal dendrites, an apical trunk of 600 um with obliques, a tuft, and the first 90 um of an axon.

    python3 examples/data/pyramidal.py > examples/data/pyramidal.swc
"""
import math
import random

SOMA, AXON, BASAL, APICAL = 1, 2, 3, 4
rng = random.Random(5)
points = []


def add(kind, at, radius, parent):
    points.append((kind, at, radius, parent))
    return len(points)


def turned(direction, by):
    """A direction that differs by an angle of about so many radians."""
    moved = [d + math.tan(by) * rng.uniform(-1, 1) for d in direction]
    size = math.sqrt(sum(d * d for d in moved))
    return [d / size for d in moved]


def grow(kind, parent, at, direction, length, radii, step=15.0, bend=0.12):
    """A row of points; gives the last one, its place and the direction there."""
    n = max(2, round(length / step))
    for i in range(1, n + 1):
        direction = turned(direction, bend)
        at = [x + length / n * d for x, d in zip(at, direction)]
        radius = radii[0] + (radii[1] - radii[0]) * i / n
        parent = add(kind, at, radius, parent)
    return parent, at, direction


def tree(kind, parent, at, direction, order, length, radius):
    """A branch and what it bears."""
    drawn = length * rng.uniform(0.7, 1.3)
    parent, at, direction = grow(kind, parent, at, direction, drawn, (radius, 0.85 * radius))
    if order > 0:
        for _ in range(2):
            tree(kind, parent, at, turned(direction, 0.7), order - 1, length * 1.4, max(0.3, radius * 0.7))


def main():
    centre = [0.0, 0.0, 0.0]
    soma = add(SOMA, centre, 9.0, -1)
    add(SOMA, [0.0, -9.0, 0.0], 9.0, soma)
    add(SOMA, [0.0, 9.0, 0.0], 9.0, soma)

    # The axon: a hillock, the initial segment, and the beginning of the rest.
    at = [0.0, -9.0, 0.0]
    first = add(AXON, at, 1.6, soma)
    end, at, direction = grow(AXON, first, at, [0.0, -1.0, 0.0], 10.0, (1.6, 0.7), step=5.0, bend=0.05)
    grow(AXON, end, at, direction, 80.0, (0.7, 0.5), bend=0.05)

    for i in range(4):
        angle = 2 * math.pi * (i + rng.uniform(-0.2, 0.2)) / 4
        direction = turned([math.cos(angle), -0.5, math.sin(angle)], 0.2)
        at = [9.0 * d for d in direction]
        first = add(BASAL, at, 1.0, soma)
        tree(BASAL, first, at, direction, 1, 70.0, 0.9)

    # The trunk, with an oblique at every 85 um, and the tuft.
    at, direction = [0.0, 9.0, 0.0], [0.0, 1.0, 0.0]
    end, radius = add(APICAL, at, 2.4, soma), 2.2
    for i in range(7):
        end, at, _ = grow(APICAL, end, at, direction, 85.0, (radius, 0.92 * radius), step=17.0, bend=0.05)
        radius *= 0.92
        if i < 6:
            angle = rng.uniform(0, 2 * math.pi)
            tree(APICAL, end, at, [math.cos(angle), 0.4, math.sin(angle)], 0, 110.0, 0.6)
    for side in (-1, 1):
        tree(APICAL, end, at, turned([0.5 * side, 1.0, 0.0], 0.2), 1, 90.0, 0.9)

    print("# Made by pyramidal.py: no reconstruction. id type x y z radius parent, in um.")
    for i, (kind, at, radius, parent) in enumerate(points, 1):
        print(i, kind, *(f"{x:.2f}" for x in at), f"{radius:.3f}", parent)


if __name__ == "__main__":
    main()
