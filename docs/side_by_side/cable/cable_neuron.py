"""Passive cable in NEURON: a section with pas, by Crank and Nicolson's rule."""
import json

from neuron import h

h.load_file("stdrun.hoc")

cable = h.Section(name="cable")
cable.L, cable.diam, cable.nseg = 1000, 2, 101
cable.Ra, cable.cm = 100, 1
cable.insert("pas")
for seg in cable:
    seg.pas.g, seg.pas.e = 5e-5, -65

step = h.IClamp(cable(0.5 / 101))           # the first compartment; cable(0) is a node without membrane beside it
step.delay, step.dur, step.amp = 0, 1e9, 0.05

middle = h.Vector().record(cable(0.5)._ref_v, 1)
end = h.Vector().record(cable(100.5 / 101)._ref_v, 1)

h.secondorder = 2
h.dt, h.steps_per_ms, h.v_init, h.tstop = 0.025, 40, -65, 60
h.run()
print(json.dumps({"middle": list(middle), "end": list(end)}))
