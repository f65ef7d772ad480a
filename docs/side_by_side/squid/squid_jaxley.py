"""Squid axon in Jaxley: its HH channel in a compartment."""
import json
from math import pi, sqrt

import jax
import jax.numpy as jnp
import jaxley as jx
import numpy as np
from jaxley.channels import HH

jax.config.update("jax_enable_x64", True)       # single precision otherwise
jax.config.update("jax_platform_name", "cpu")

axon = jx.Compartment()
axon.insert(HH())
axon.set("length", sqrt(1000 / pi))             # um
axon.set("radius", sqrt(1000 / pi) / 2)
axon.set("capacitance", 1.0)                    # uF/cm2
axon.set("HH_eLeak", -54.4)
axon.set("v", -65.0)
axon.init_states()                              # gates at their steady state for this voltage

axon.stimulate(jx.step_current(i_delay=5, i_dur=40, i_amp=0.1, delta_t=0.025, t_max=60))
axon.record("v")
v = np.asarray(jx.integrate(axon, delta_t=0.025))[0]
crossed = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0)) + 1
print(json.dumps({"spikes": list(crossed * 0.025), "v": list(v[:2401:4])}))
