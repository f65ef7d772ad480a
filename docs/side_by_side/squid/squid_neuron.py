"""Squid axon in NEURON: the built-in hh, an IClamp, fixed steps."""
import json
from math import pi, sqrt

from neuron import h

h.load_file("stdrun.hoc")
h.usetable_hh = 0                       # rates by formula, not from a table

soma = h.Section(name="soma")
soma.L = soma.diam = sqrt(1000 / pi)    # a mantle of 1000 um2
soma.cm = 1
soma.insert("hh")
for seg in soma:
    seg.hh.el = -54.4                   # gnabar 0.12, gkbar 0.036 and gl 0.0003 S/cm2 are the defaults

step = h.IClamp(soma(0.5))
step.delay, step.dur, step.amp = 5, 40, 0.1                 # ms, ms, nA

v = h.Vector().record(soma(0.5)._ref_v, 0.1)
spikes = h.Vector()
detector = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
detector.threshold = 0
detector.record(spikes)

h.celsius = 6.3
h.dt = 0.025
h.steps_per_ms = 40
h.v_init = -65
h.tstop = 60
h.run()
print(json.dumps({"spikes": list(spikes), "v": list(v)}))
