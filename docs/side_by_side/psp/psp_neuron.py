"""Postsynaptic potentials in NEURON: Exp2Syn, whose peak for a weight of 1 is 1, and NetCons with a delay."""
import json
from math import pi, sqrt

from neuron import h

h.load_file("stdrun.hoc")

soma = h.Section(name="soma")
soma.L = soma.diam = sqrt(20000 / pi)           # 20000 um2
soma.insert("pas")
soma(0.5).pas.g, soma(0.5).pas.e = 5e-5, -65
synapse = h.Exp2Syn(soma(0.5))
synapse.tau1, synapse.tau2, synapse.e = 0.5, 5, 0
sources, connections = [], []
for t in (10, 20, 23, 60):
    source = h.NetStim()
    source.start, source.number, source.noise = t, 1, 0
    connection = h.NetCon(source, synapse)
    connection.delay, connection.weight[0] = 1.5, 0.002     # ms, uS
    sources.append(source)
    connections.append(connection)

v = h.Vector().record(soma(0.5)._ref_v, 0.5)
h.dt, h.steps_per_ms, h.v_init, h.tstop = 0.025, 40, -65, 100.05
h.run()
print(json.dumps({"v": list(v)[:201]}))
