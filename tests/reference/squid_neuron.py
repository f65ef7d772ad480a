"""The same squid axon patch in NEURON with its built-in `hh` mechanism (default implicit fixed step)."""
import math

from common import store

AREA_UM2, DENSITY = 1000.0, 10.0                     # um2, uA/cm2


def run(dt):
    import neuron
    from neuron import h
    h.load_file("stdrun.hoc")
    soma = h.Section(name="soma")
    soma.L = soma.diam = math.sqrt(AREA_UM2 / math.pi)   # lateral area of the cylinder: pi * diam * L
    soma.nseg, soma.cm = 1, 1.0
    soma.insert("hh")
    seg = soma(0.5)
    seg.hh.gnabar, seg.hh.gkbar, seg.hh.gl, seg.hh.el = 0.12, 0.036, 0.0003, -54.4
    soma.ena, soma.ek = 50.0, -77.0
    h.celsius = 6.3
    h.usetable_hh = 0
    clamp = h.IClamp(seg)
    clamp.delay, clamp.dur = 10.0, 50.0
    clamp.amp = DENSITY * AREA_UM2 * 1e-8 * 1e3          # uA/cm2 * cm2 -> uA -> nA: 0.1
    netcon = h.NetCon(seg._ref_v, None, sec=soma)
    netcon.threshold = 0.0
    events, v, t = h.Vector(), h.Vector(), h.Vector()
    netcon.record(events)
    count = h.APCount(seg)
    count.thresh = 0.0
    v.record(seg._ref_v)
    t.record(h._ref_t)
    h.cvode_active(0)
    h.secondorder = 0
    h.steps_per_ms, h.dt, h.tstop, h.v_init = 1.0 / dt, dt, 100.0, -65.0
    h.run()
    v, t = list(v), list(t)
    assert count.n == len(events)
    assert abs(seg.area() - AREA_UM2) < 1e-9
    per_ms = round(1.0 / dt)
    assert max(abs(t[k] - k * dt) for k in range(len(t))) < 1e-8
    # straight line between the two samples around the crossing
    cross = [k * dt - dt * v[k] / (v[k] - v[k - 1]) for k in range(1, len(v)) if v[k - 1] < 0.0 <= v[k]]
    assert len(cross) == len(events)
    return {"netcon": list(events), "cross": cross, "v": v[::per_ms], "version": neuron.__version__, "amp": clamp.amp}


def main():
    a, b = run(0.025), run(0.001)
    store("squid_neuron", {
        "what": "NEURON hh, celsius 6.3, el -54.4 mV, no tables, one compartment of 1000 um2, IClamp 0.1 nA 10-60 ms",
        "neuron_version": a["version"],
        "dt_ms": 0.025, "secondorder": 0,
        "spike_times_ms": a["netcon"], "spike_times_interpolated_ms": a["cross"],
        "v_every_1ms_mV": a["v"],
        "dt_0.001": {"spike_times_ms": b["netcon"], "spike_times_interpolated_ms": b["cross"]},
    })
    print(a["netcon"], a["cross"], b["netcon"], b["cross"], a["amp"], sep="\n")


if __name__ == "__main__":
    main()
