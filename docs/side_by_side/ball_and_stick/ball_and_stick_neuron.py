"""Ball and stick in NEURON: hh, pas, and an ExpSyn that a NetCon brings events to."""
import json

from neuron import h

h.load_file("stdrun.hoc")
h.usetable_hh = 0

soma, dend = h.Section(name="soma"), h.Section(name="dend")
soma.L, soma.diam, soma.nseg = 20, 20, 1
dend.L, dend.diam, dend.nseg = 400, 2, 21
dend.connect(soma(1))
for section in (soma, dend):
    section.Ra, section.cm = 100, 1
soma.insert("hh")                               # its leak reverses at -54.3 mV
dend.insert("pas")
for seg in dend:
    seg.pas.g, seg.pas.e = 5e-5, -65

synapse = h.ExpSyn(dend(0.5))
synapse.tau, synapse.e = 2, 0
connection = h.NetCon(None, synapse)
connection.weight[0] = 0.01                     # uS
start = h.FInitializeHandler(lambda: [connection.event(t) for t in (6, 21, 23)])

v_soma = h.Vector().record(soma(0.5)._ref_v, 0.1)
v_dend = h.Vector().record(dend(0.5)._ref_v, 0.1)
spikes = h.Vector()
detector = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
detector.threshold = 0
detector.record(spikes)

h.celsius, h.dt, h.steps_per_ms, h.v_init, h.tstop = 6.3, 0.025, 40, -65, 40
h.run()
print(json.dumps({"spikes": list(spikes), "soma": list(v_soma), "dend": list(v_dend)}))
