"""Passive cable in Brian2: a SpatialNeuron on a Cylinder, whose voltages are solved for together."""
import json

from brian2 import (Cylinder, SpatialNeuron, StateMonitor, cm, defaultclock, ms, mV, nA, ohm, prefs, run, siemens, uF, um)

prefs.codegen.target = "numpy"
defaultclock.dt = 0.025 * ms

g_l, e_l = 5e-5 * siemens / cm**2, -65 * mV
eqs = """
Im = g_l*(e_l - v) : amp/meter**2
I : amp (point current)
"""
cable = SpatialNeuron(Cylinder(length=1000 * um, diameter=2 * um, n=101), eqs, Cm=1 * uF / cm**2, Ri=100 * ohm * cm, method="exponential_euler")
cable.v = -65 * mV
cable.I[0] = 0.05 * nA                      # the first compartment
v = StateMonitor(cable, "v", record=[50, 100], dt=1 * ms)
run(60 * ms)
v.record_single_timestep()
print(json.dumps({"middle": list(v.v[0] / mV), "end": list(v.v[1] / mV)}))
