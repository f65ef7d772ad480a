"""Squid axon in Brian2: equations with units, the classical Runge-Kutta method."""
import json

from brian2 import (NeuronGroup, SpikeMonitor, StateMonitor, cm, defaultclock, ms, mV, nA, prefs, run, siemens, uF, um)

prefs.codegen.target = "numpy"
defaultclock.dt = 0.025 * ms

area = 1000 * um**2
Cm = 1 * uF / cm**2 * area
g_na, g_k, g_l = (g * siemens / cm**2 * area for g in (0.12, 0.036, 0.0003))
e_na, e_k, e_l = 50 * mV, -77 * mV, -54.4 * mV
eqs = """
dv/dt = (I - g_na*m**3*h*(v - e_na) - g_k*n**4*(v - e_k) - g_l*(v - e_l)) / Cm : volt
I = 0.1*nA * int(t >= 5*ms) * int(t < 45*ms) : amp (constant over dt)
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
# A threshold without a reset: `refractory` keeps one action potential from being counted in every step above 0 mV.
axon = NeuronGroup(1, eqs, method="rk4", threshold="v > 0*mV", refractory="v > 0*mV")
axon.v = -65 * mV
axon.m = "a_m/(a_m + b_m)"              # nothing begins at rest unless one says so
axon.h = "a_h/(a_h + b_h)"
axon.n = "a_n/(a_n + b_n)"

v = StateMonitor(axon, "v", record=True, dt=0.1 * ms)
spikes = SpikeMonitor(axon)
run(60 * ms)
v.record_single_timestep()              # the sample at the end of the run
print(json.dumps({"spikes": list(spikes.t / ms + 0.025),     # Brian2 writes down where the step began
                  "v": list(v.v[0] / mV)}))
