"""Izhikevich's neuron in NEURON, by izhikevich.mod (`nrnivmodl` first)."""
import json

from neuron import h

h.load_file("stdrun.hoc")

host = h.Section(name="host")                   # every point process sits somewhere
cell = h.Izhikevich(host(0.5))
cell.drive = 10
v = h.Vector().record(cell._ref_vm, 1)
u = h.Vector().record(cell._ref_u, 1)
spikes = h.Vector()
detector = h.NetCon(cell, None)
detector.record(spikes)

h.dt, h.steps_per_ms, h.tstop = 0.1, 10, 300
h.run()
print(json.dumps({"spikes": list(spikes), "v": list(v), "u": list(u)}))
