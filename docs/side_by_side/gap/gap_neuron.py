"""Two cells and a gap junction in NEURON, by gap.mod (`nrnivmodl` first): two halves, each with a pointer to the other's voltage."""
import json

from neuron import h

h.load_file("stdrun.hoc")
h.usetable_hh = 0

pair = [h.Section(name=f"soma{i}") for i in range(2)]
for soma in pair:
    soma.L, soma.diam = 20, 20
    soma.insert("hh")
halves = [h.HalfGap(soma(0.5)) for soma in pair]
for half, other in zip(halves, reversed(pair)):
    half.g = 2
    half._ref_vother = other(0.5)._ref_v

step = h.IClamp(pair[0](0.5))
step.delay, step.dur, step.amp = 5, 40, 0.15

v = [h.Vector().record(soma(0.5)._ref_v, 0.1) for soma in pair]
times, cells, detectors = h.Vector(), h.Vector(), []
for number, soma in enumerate(pair):
    detectors.append(h.NetCon(soma(0.5)._ref_v, None, sec=soma))
    detectors[-1].threshold = 0
    detectors[-1].record(times, cells, number)

h.celsius, h.dt, h.steps_per_ms, h.v_init, h.tstop = 6.3, 0.025, 40, -65, 60
h.run()
print(json.dumps({"spikes": list(zip(times, cells)), "first": list(v[0]), "second": list(v[1])}))
