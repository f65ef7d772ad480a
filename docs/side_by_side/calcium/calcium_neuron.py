"""Adaptation by calcium in NEURON: hh, and cal.mod, kca.mod and cashell.mod (`nrnivmodl` first), which meet in the ion ca."""
import json

from neuron import h

h.load_file("stdrun.hoc")
h.usetable_hh = 0

soma = h.Section(name="soma")
soma.L, soma.diam, soma.Ra = 20, 20, 100
for name in ("hh", "cal", "kca", "cashell"):
    soma.insert(name)
step = h.IClamp(soma(0.5))
step.delay, step.dur, step.amp = 5, 90, 0.3

v = h.Vector().record(soma(0.5)._ref_v, 0.1)
ca = h.Vector().record(soma(0.5)._ref_cai, 0.1)
spikes = h.Vector()
detector = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
detector.threshold = 0
detector.record(spikes)

h.celsius, h.dt, h.steps_per_ms, h.v_init, h.tstop = 6.3, 0.005, 200, -65, 100.05
h.run()
print(json.dumps({"spikes": list(spikes), "v": list(v)[:1001], "ca": [1000 * x for x in ca][:1001]}))           # uM
