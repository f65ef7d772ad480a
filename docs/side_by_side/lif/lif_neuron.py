"""f-I curve in NEURON: a passive membrane, and a Python function that resets it when it spikes. (The IntFire cells take events only.)"""
import json
from math import pi, sqrt

from neuron import h

h.load_file("stdrun.hoc")
E_L = -60
spikes = []


class Lif:
    """200 pF and 10 nS. At the resting potential, which is that of the reset, no current holds the voltage in the refractory time."""

    def __init__(self, number):
        self.number, self.amp = number, 0.09 + 0.02 * number            # nA
        self.soma = h.Section(name=f"soma{number}")
        self.soma.L = self.soma.diam = sqrt(20000 / pi)                 # 20000 um2, so 200 pF at 1 uF/cm2
        self.soma.insert("pas")
        self.soma(0.5).pas.g, self.soma(0.5).pas.e = 5e-5, E_L
        self.step = h.IClamp(self.soma(0.5))
        self.step.delay, self.step.dur, self.step.amp = 0, 1e9, self.amp
        self.detector = h.NetCon(self.soma(0.5)._ref_v, None, sec=self.soma)
        self.detector.threshold = -50
        self.detector.record(self.fire)

    def fire(self):
        spikes.append([h.t, self.number])
        self.soma(0.5).v = E_L
        self.step.amp = 0
        h.cvode.event(h.t + 2 - h.dt / 2, self.release)         # ms; at the beginning of a step, whatever the rounding

    def release(self):
        self.step.amp = self.amp


cells = [Lif(number) for number in range(12)]
h.dt, h.steps_per_ms, h.v_init, h.tstop = 0.1, 10, E_L, 500
h.run()
print(json.dumps({"spikes": spikes, "counts": [sum(i == number for _, i in spikes) for number in range(12)]}))
