"""NEURON's CVODE at tight tolerances: the squid axon patch, and the branched cell of `ball_and_stick_neuron.py`.

Spike times are those of `condition_order(2)`, interpolated within a step.
"""
import math

from ball_and_stick_neuron import branched_cell
from common import store

ATOL = 1e-11


def solved(h, segments, spiking, threshold, times):
    events = h.Vector()
    netcon = h.NetCon(spiking._ref_v, None, sec=spiking.sec)
    netcon.threshold = threshold
    netcon.record(events)
    h.celsius, h.usetable_hh = 6.3, 0
    cvode = h.CVode()
    cvode.active(1)
    cvode.condition_order(2)
    cvode.atol(ATOL)
    cvode.rtol(ATOL)
    h.finitialize(-65.0)
    rows = []
    for t in times:
        if t > 0.0:
            cvode.solve(t)
        rows.append([seg.v for seg in segments])
    return [list(row) for row in zip(*rows)], list(events)


def squid():
    from neuron import h
    h.load_file("stdrun.hoc")
    soma = h.Section(name="soma")
    soma.L = soma.diam = math.sqrt(1000.0 / math.pi)
    soma.nseg, soma.cm = 1, 1.0
    soma.insert("hh")
    seg = soma(0.5)
    seg.hh.gnabar, seg.hh.gkbar, seg.hh.gl, seg.hh.el = 0.12, 0.036, 0.0003, -54.4
    soma.ena, soma.ek = 50.0, -77.0
    clamp = h.IClamp(seg)
    clamp.delay, clamp.dur, clamp.amp = 10.0, 50.0, 0.1
    times = [5.0 * k for k in range(21)]
    (v,), spikes = solved(h, [seg], seg, 0.0, times)
    return {"t_ms": times, "v_mV": v, "spikes_ms": spikes}


def branched():
    from neuron import h
    h.load_file("stdrun.hoc")
    soma, trunk, left, right, basal, spine = branched_cell(h)
    clamp = h.IClamp(trunk(0.5))
    clamp.delay, clamp.dur, clamp.amp = 2.0, 15.0, 0.8
    places = [soma(0.5), trunk(0.5), left(0.9), right(0.9375), basal(0.875), spine(0.5)]
    times = [0.5 * k for k in range(41)]
    rows, spikes = solved(h, places, soma(0.5), -10.0, times)
    names = ["soma(0.5)", "trunk(0.5)", "left(0.9)", "right(0.9375)", "basal(0.875)", "spine(0.5)"]
    return {"places": names, "t_ms": times, "mV": rows, "spikes_ms": spikes}


def main():
    import neuron
    store("adaptive_neuron", {
        "what": f"CVODE, atol = rtol = {ATOL}, condition_order 2, celsius 6.3, no tables",
        "neuron_version": neuron.__version__,
        "squid": squid(),
        "branched": branched(),
    })


if __name__ == "__main__":
    main()
