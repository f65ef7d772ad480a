"""Cells with sections in NEURON, by its default implicit fixed step: the example `ball_and_stick`, and a branched one."""
from common import store

DT = 0.025


def section(h, name, length, diam, nseg, ra=100.0):
    s = h.Section(name=name)
    s.L, s.diam, s.nseg, s.Ra, s.cm = length, diam, nseg, ra, 1.0
    return s


def leak(s, g, e):
    s.insert("pas")
    for seg in s:
        seg.pas.g, seg.pas.e = g, e


def axon(s):
    s.insert("hh")
    for seg in s:
        seg.hh.gl, seg.hh.el = 0.0003, -54.4
    s.ena, s.ek = 50.0, -77.0


def run(h, segments, tstop, every, spiking, secondorder=0):
    h.celsius, h.usetable_hh, h.secondorder, h.dt = 6.3, 0, secondorder, DT
    recorded = [h.Vector().record(seg._ref_v) for seg in segments]
    events = h.Vector()
    netcon = h.NetCon(spiking._ref_v, None, sec=spiking.sec)
    netcon.threshold = -10.0
    netcon.record(events)
    h.finitialize(-65.0)
    steps = round(tstop / DT)
    for _ in range(steps):
        h.fadvance()
    for v in recorded:
        assert len(v) == steps + 1
    return [list(v)[::every] for v in recorded], list(events)


def ball_and_stick(secondorder=0):
    from neuron import h
    h.load_file("stdrun.hoc")
    soma, dend = section(h, "soma", 20, 20, 1), section(h, "dend", 400, 2, 20)
    dend.connect(soma(1))
    axon(soma)
    leak(dend, 0.00005, -65.0)
    clamp = h.IClamp(soma(0.5))
    clamp.delay, clamp.dur, clamp.amp = 5.0, 20.0, 0.3
    (v, end), spikes = run(h, [soma(0.5), dend(0.975)], 30.0, 4, soma(0.5), secondorder)
    return {"soma_mV": v, "dend_end_mV": end, "spikes_ms": spikes}


def branched_cell(h):
    soma = section(h, "soma", 25, 18, 3)
    trunk = section(h, "trunk", 150, 3, 7, ra=150.0)
    left, right = section(h, "left", 120, 1.5, 5), section(h, "right", 200, 1.0, 8)
    basal, spine = section(h, "basal", 90, 2, 4), section(h, "spine", 10, 0.5, 1)
    trunk.connect(soma(1))
    left.connect(trunk(1))
    right.connect(trunk(1))
    basal.connect(soma(0))
    spine.connect(right(0.5))
    for s in (soma, left):
        axon(s)
    for s in (trunk, right, basal, spine):
        leak(s, 0.0001, -67.0)
    return soma, trunk, left, right, basal, spine


def branched(secondorder=0):
    from neuron import h
    h.load_file("stdrun.hoc")
    soma, trunk, left, right, basal, spine = branched_cell(h)
    clamp = h.IClamp(trunk(0.5))
    clamp.delay, clamp.dur, clamp.amp = 2.0, 15.0, 0.8
    places = [soma(0.5), trunk(0.5), left(0.9), right(0.9375), basal(0.875), spine(0.5)]
    rows, spikes = run(h, places, 20.0, 4, soma(0.5), secondorder)
    return {"mV": rows, "places": ["soma(0.5)", "trunk(0.5)", "left(0.9)", "right(0.9375)", "basal(0.875)", "spine(0.5)"],
            "spikes_ms": spikes}


def ring(n=10):
    """Balls and sticks in a ring, each with a synapse in the middle of its dendrite; an event at 1 ms into the first begins it."""
    from neuron import h
    h.load_file("stdrun.hoc")
    cells, kept = [], []
    for i in range(n):
        soma, dend = section(h, f"soma{i}", 20, 20, 1), section(h, f"dend{i}", 400, 2, 21)
        dend.connect(soma(1))
        axon(soma)
        leak(dend, 0.00005, -65.0)
        synapse = h.ExpSyn(dend(0.5))
        synapse.tau, synapse.e = 2.0, 0.0
        cells.append((soma, dend, synapse))
    for i, (soma, _, _) in enumerate(cells):
        source = h.NetCon(soma(0.5)._ref_v, cells[(i + 1) % n][2], sec=soma)
        source.threshold, source.delay, source.weight[0] = -10.0, 5.0, 0.01
        kept.append(source)
    begin = h.NetStim()
    begin.number, begin.start = 1, 1.0
    first = h.NetCon(begin, cells[0][2])
    first.delay, first.weight[0] = 0.0, 0.01
    kept += [begin, first]
    places = [cell[part](0.5) for cell in cells[:3] for part in (0, 1)]
    rows, spikes = run(h, places, 40.0, 20, cells[-6][0](0.5))
    return {"soma_mV": rows[::2], "dend_mV": rows[1::2], "spikes_of_4_ms": spikes}


def electrode(secondorder=0):
    """A voltage clamp through 20 Mohm in the trunk of the branched cell."""
    from neuron import h
    h.load_file("stdrun.hoc")
    soma, trunk, left, right, basal, spine = branched_cell(h)
    clamp = h.SEClamp(trunk(0.5))
    clamp.rs, clamp.dur1, clamp.amp1, clamp.dur2, clamp.amp2, clamp.dur3, clamp.amp3 = 20.0, 2.0, -65.0, 10.0, -20.0, 100.0, -65.0
    rows, spikes = run(h, [soma(0.5), trunk(0.5), right(0.9375)], 20.0, 4, soma(0.5), secondorder)
    return {"mV": rows, "places": ["soma(0.5)", "trunk(0.5)", "right(0.9375)"], "spikes_ms": spikes}


def junctions(secondorder=0):
    """Two branched cells with a gap junction (4 nS) between their left branches, and one (10 nS) from each trunk to the dendrite of a ball
    and stick. A junction is two electrodes, each held at what the other compartment had when the step began."""
    from neuron import h
    h.load_file("stdrun.hoc")
    cells = [branched_cell(h) for _ in range(2)]
    ball, stick = section(h, "ball", 20, 20, 1), section(h, "stick", 400, 2, 21)
    stick.connect(ball(1))
    axon(ball)
    leak(stick, 0.00005, -65.0)
    clamp = h.IClamp(cells[0][1](0.5))
    clamp.delay, clamp.dur, clamp.amp = 2.0, 25.0, 1.2
    pairs = [(cells[0][2](0.9), cells[1][2](0.9), 250.0)] + [(cell[1](0.5), stick(0.5), 100.0) for cell in cells]
    ends = []
    for one, other, resistance in pairs:
        for here, there in ((one, other), (other, one)):
            electrode = h.SEClamp(here)
            electrode.rs, electrode.dur1 = resistance, 1e9
            ends.append((electrode, there))
    places = [cells[0][0](0.5), cells[1][0](0.5), cells[1][2](0.9), stick(0.5), ball(0.5)]
    h.celsius, h.usetable_hh, h.secondorder, h.dt = 6.3, 0, secondorder, DT
    h.finitialize(-65.0)
    rows = [[segment.v] for segment in places]
    for _ in range(round(30.0 / DT)):
        for electrode, there in ends:
            electrode.amp1 = there.v
        h.fadvance()
        for row, segment in zip(rows, places):
            row.append(segment.v)
    return {"mV": [row[::4] for row in rows], "places": ["pyr[0].soma(0.5)", "pyr[1].soma(0.5)", "pyr[1].left(0.9)", "ball[0].stick(0.5)", "ball[0].ball(0.5)"]}


def main():
    import neuron
    store("ball_and_stick_neuron", {
        "what": "cells with sections, hh at 6.3 degC without tables, fixed step of 0.025 ms, secondorder 0 and 2; every fourth sample, of the ring every twentieth",
        "neuron_version": neuron.__version__,
        "ball_and_stick": ball_and_stick(),
        "branched": branched(),
        "ring": ring(),
        "ball_and_stick_second_order": ball_and_stick(2),
        "branched_second_order": branched(2),
        "electrode": electrode(),
        "electrode_second_order": electrode(2),
        "junctions": junctions(),
    })


if __name__ == "__main__":
    main()
