"""Extracellular potentials: currents through membranes by NEURON (`i_membrane_`), what they make at electrodes by LFPykit.

The branched cell of `ball_and_stick_neuron.py` in space, with an input, a synapse and the electrode of a clamp; and a cell of `swc_neuron.py`, whose
compartments are cut into straight pieces for LFPykit, each with its part of the current (LFPy takes the straight line from end to end).
"""
import numpy as np

from ball_and_stick_neuron import axon, branched_cell, leak
from common import store
from swc_neuron import SHAPES, read

DT, EVERY, SIGMA = 0.025, 4, 0.3
# In um; the third is inside of the soma.
CONTACTS = [[30.0, 0.0, 0.0], [-20.0, 150.0, 10.0], [2.0, 3.0, -1.0], [60.0, 260.0, -40.0], [0.0, 400.0, 0.0], [-500.0, -300.0, 200.0]]
DIRECTIONS = {"soma": (0, 1, 0), "trunk": (0, 1, 0), "left": (-1, 1, 0.5), "right": (1, 2, 0), "basal": (0, -1, 0.5), "spine": (1, -1, 1)}


def currents(h, sections, tstop, secondorder):
    """Currents out of all compartments of some sections (nA), a row for each compartment, every fourth step; behind the first, of which NEURON says nothing."""
    h.cvode.use_fast_imem(1)
    h.celsius, h.usetable_hh, h.secondorder, h.dt = 6.3, 0, secondorder, DT
    segments = [segment for section in sections for segment in section]
    h.finitialize(-65.0)
    rows = []
    for step in range(1, round(tstop / DT) + 1):
        h.fadvance()
        if step % EVERY == 0:
            rows.append([segment.i_membrane_ for segment in segments])
    return np.array(rows).T


def unit(direction):
    direction = np.array(direction, dtype=float)
    return direction / np.linalg.norm(direction)


def potentials(pieces, currents, contacts, root):
    """What LFPykit makes of currents (nA) in straight pieces (start, end, diameter, element, part of the element): in mV, a row for each contact. `root`: the
    pieces of the root are a point in its middle."""
    import lfpykit
    start, end = (np.array([p[k] for p in pieces]) for k in (0, 1))
    cell = lfpykit.CellGeometry(*[np.stack([start[:, k], end[:, k]], axis=1) for k in range(3)], d=np.array([p[2] for p in pieces]))
    x, y, z = np.array(contacts).T
    own = np.array([p[4] for p in pieces])[:, None] * currents[[p[3] for p in pieces]]
    maps = {kind: getattr(lfpykit, name)(cell, x=x, y=y, z=z, sigma=SIGMA).get_transformation_matrix()
            for kind, name in (("line", "LineSourcePotential"), ("point", "PointSourcePotential"))}
    maps["root_as_point"] = np.where([p[3] in root for p in pieces], maps["point"], maps["line"])
    return {kind: (of @ own).tolist() for kind, of in maps.items()}


def branched(secondorder):
    from neuron import h
    h.load_file("stdrun.hoc")
    names = ["soma", "trunk", "left", "right", "basal", "spine"]
    sections = dict(zip(names, branched_cell(h)))
    inject = h.IClamp(sections["trunk"](0.5))
    inject.delay, inject.dur, inject.amp = 2.0, 15.0, 0.8
    synapse = h.ExpSyn(sections["right"](0.9375))
    synapse.tau, synapse.e = 2.0, 0.0
    begin = h.NetStim()
    begin.number, begin.start = 1, 4.0
    event = h.NetCon(begin, synapse)
    event.delay, event.weight[0] = 0.0, 0.005
    clamp = h.SEClamp(sections["left"](0.9))
    clamp.rs, clamp.dur1, clamp.amp1 = 50.0, 1e9, -60.0
    rows = currents(h, sections.values(), 20.0, secondorder)
    begins = {"trunk": ("soma", 1), "left": ("trunk", 1), "right": ("trunk", 1), "basal": ("soma", 0), "spine": ("right", 0.5)}
    ends, pieces = {"soma": [unit(DIRECTIONS["soma"]) * y for y in (-12.5, 12.5)]}, []
    for name, section in sections.items():
        if name != "soma":
            parent, x = begins[name]
            start = ends[parent][0] + x * (ends[parent][1] - ends[parent][0])
            ends[name] = [start, start + section.L * unit(DIRECTIONS[name])]
        at = lambda k: ends[name][0] + k / section.nseg * (ends[name][1] - ends[name][0])
        pieces += [(at(k), at(k + 1), section.diam, len(pieces) + k, 1.0) for k in range(section.nseg)]
    return {"mV": potentials(pieces, rows, CONTACTS, root=range(3)), "elements": [f"{name}({(k + 0.5) / s.nseg:.4g})" for name, s in sections.items() for k in range(s.nseg)],
            "peak_nA": np.abs(rows).max(axis=1).tolist()}


def of_a_file(text):
    from neuron import h
    sections = read(text)
    for name, section in sections.items():
        axon(section) if name.startswith(("soma", "axon")) else leak(section, 0.0001, -65.0)
    clamp = h.IClamp(sections["dend[0]"](0.5))
    clamp.delay, clamp.dur, clamp.amp = 1.0, 10.0, 0.5
    rows = currents(h, sections.values(), 15.0, 0)
    pieces, element = [], 0
    for section in sections.values():
        points = np.array([[section.x3d(i), section.y3d(i), section.z3d(i)] for i in range(section.n3d())])
        arcs = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        thick = np.array([section.diam3d(i) for i in range(section.n3d())])
        borders = arcs[-1] * np.arange(section.nseg + 1) / section.nseg
        cuts = np.unique(np.concatenate([arcs, borders[1:-1]]))
        for a, b in zip(cuts, cuts[1:]):
            if b - a > 1e-6:
                at = lambda way: np.array([np.interp(way, arcs, points[:, k]) for k in range(3)])
                k = min(int(np.searchsorted(borders, 0.5 * (a + b)) - 1), section.nseg - 1)
                pieces.append((at(a), at(b), np.interp(0.5 * (a + b), arcs, thick), element + k, (b - a) * section.nseg / arcs[-1]))
        element += section.nseg
    # The soma is a sphere: a point in its middle.
    (soma,) = [section for name, section in sections.items() if name.startswith("soma")]
    first = next(i for i, section in enumerate(sections.values()) if section == soma)
    before = sum(section.nseg for section in list(sections.values())[:first])
    pieces = [p for p in pieces if not before <= p[3] < before + soma.nseg]
    middle = np.array([soma.x3d(i) for i in (0, soma.n3d() - 1)]).mean(), np.array([soma.y3d(i) for i in (0, soma.n3d() - 1)]).mean(), 0.0
    small = np.array([1e-3, 0.0, 0.0])
    assert soma.nseg == 1
    pieces.append((np.array(middle) - small, np.array(middle) + small, soma.diam3d(0), before, 1.0))
    return {"mV": potentials(pieces, rows, CONTACTS, root=[before])["root_as_point"], "swc": text}


def main():
    import lfpykit
    import neuron
    store("lfp_neuron", {
        "what": "extracellular potentials (mV) at contacts in 0.3 S/m, every fourth step of 0.025 ms from the fourth on",
        "neuron_version": neuron.__version__,
        "lfpykit_version": lfpykit.__version__,
        "contacts_um": CONTACTS,
        "branched": branched(0),
        "branched_second_order": branched(2),
        "file": of_a_file(SHAPES["types_change"]),
    })


if __name__ == "__main__":
    main()
