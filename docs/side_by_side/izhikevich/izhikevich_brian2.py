"""Izhikevich's neuron in Brian2, by forward Euler."""
import json

from brian2 import NeuronGroup, SpikeMonitor, StateMonitor, defaultclock, ms, mV, prefs, run

prefs.codegen.target = "numpy"
defaultclock.dt = 0.1 * ms

a, b, c, d = 0.02 / ms, 0.2 / ms, -65 * mV, 8 * mV / ms
eqs = """
dv/dt = (0.04/mV*v**2 + 5*v + 140*mV)/ms - u + 10*mV/ms : volt
du/dt = a*(b*v - u) : volt/second
"""
cell = NeuronGroup(1, eqs, method="euler", threshold="v >= 30*mV", reset="v = c; u += d")
cell.v, cell.u = c, b * c
states = StateMonitor(cell, ["v", "u"], record=True, dt=1 * ms)
spikes = SpikeMonitor(cell)
run(300 * ms)
states.record_single_timestep()
print(json.dumps({"spikes": list(spikes.t / ms + 0.1), "v": list(states.v[0] / mV), "u": list(states.u[0] / (mV / ms))}))
