"""Two cells and a gap junction in Brian2: a summed variable of Synapses, which is computed once in a step."""
import json
from math import pi

from brian2 import (NeuronGroup, SpikeMonitor, StateMonitor, Synapses, cm, defaultclock, ms, mV, nA, nS, prefs, run, siemens, uF, um)

prefs.codegen.target = "numpy"
defaultclock.dt = 0.0125 * ms

area = pi * (20 * um)**2
Cm = 1 * uF / cm**2 * area
g_na, g_k, g_l = (g * siemens / cm**2 * area for g in (0.12, 0.036, 0.0003))
e_na, e_k, e_l = 50 * mV, -77 * mV, -54.3 * mV
eqs = """
dv/dt = (I + I_gap - g_na*m**3*h*(v - e_na) - g_k*n**4*(v - e_k) - g_l*(v - e_l)) / Cm : volt
I = 0.15*nA * int(i == 0) * int(t >= 5*ms) * int(t < 45*ms) : amp (constant over dt)
I_gap : amp
dm/dt = a_m*(1 - m) - b_m*m : 1
dh/dt = a_h*(1 - h) - b_h*h : 1
dn/dt = a_n*(1 - n) - b_n*n : 1
a_m = 1/ms / exprel(-(v + 40*mV)/(10*mV)) : Hz
b_m = 4/ms * exp(-(v + 65*mV)/(18*mV)) : Hz
a_h = 0.07/ms * exp(-(v + 65*mV)/(20*mV)) : Hz
b_h = 1/ms / (1 + exp(-(v + 35*mV)/(10*mV))) : Hz
a_n = 0.1/ms / exprel(-(v + 55*mV)/(10*mV)) : Hz
b_n = 0.125/ms * exp(-(v + 65*mV)/(80*mV)) : Hz
"""
pair = NeuronGroup(2, eqs, method="rk4", threshold="v > 0*mV", refractory="v > 0*mV")
pair.v = -65 * mV
pair.m, pair.h, pair.n = "a_m/(a_m + b_m)", "a_h/(a_h + b_h)", "a_n/(a_n + b_n)"

gap = Synapses(pair, pair, "I_gap_post = 2*nS*(v_pre - v_post) : amp (summed)")
gap.connect(condition="i != j")

v = StateMonitor(pair, "v", record=True, dt=0.1 * ms)
spikes = SpikeMonitor(pair)
run(60 * ms)
v.record_single_timestep()
print(json.dumps({"spikes": [[t + 0.0125, int(i)] for t, i in zip(spikes.t / ms, spikes.i)],
                  "first": list(v.v[0] / mV), "second": list(v.v[1] / mV)}))
