"""Passive cable in Jaxley: a branch of 101 compartments, by Crank and Nicolson's rule."""
import json

import jax
import jaxley as jx
import numpy as np
from jaxley.channels import Leak

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platform_name", "cpu")

cable = jx.Branch(jx.Compartment(), ncomp=101)
cable.insert(Leak())
cable.set("length", 1000 / 101)             # um, of a compartment
cable.set("radius", 1.0)
cable.set("axial_resistivity", 100.0)       # ohm cm
cable.set("capacitance", 1.0)
cable.set("Leak_gLeak", 5e-5)               # S/cm2
cable.set("Leak_eLeak", -65.0)
cable.set("v", -65.0)

cable.comp(0).stimulate(jx.step_current(i_delay=0, i_dur=60, i_amp=0.05, delta_t=0.025, t_max=60))
cable.comp(50).record("v")
cable.comp(100).record("v")
v = np.asarray(jx.integrate(cable, delta_t=0.025, solver="crank_nicolson"))[:, :2401:40]
print(json.dumps({"middle": list(v[0]), "end": list(v[1])}))
