"""f-I curve in Jaxley. Its Fire channel knows no refractory time, so this one is written here; it resets in the next step."""
import json
from math import pi, sqrt

import jax
import jax.numpy as jnp
import jaxley as jx
import numpy as np
from jaxley.channels import Channel, Leak

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platform_name", "cpu")


class FireAndHold(Channel):
    """Resets the voltage when it has crossed the threshold, and holds it for the refractory time."""

    def __init__(self, name=None):
        self.current_is_in_mA_per_cm2 = True
        super().__init__(name)
        self.channel_params = {"v_threshold": -50.0, "v_reset": -60.0, "t_ref": 2.0, "i_ext": 0.0}
        self.channel_states = {"left": 0.0, "fired": 0.0}
        self.current_name = "i_fire"

    def update_states(self, states, dt, v, params):
        fired = v > params["v_threshold"]
        left = jnp.where(fired, params["t_ref"], states["left"] - dt)
        return {"v": jnp.where(fired | (left > dt / 2), params["v_reset"], v), "left": left, "fired": fired.astype(float)}

    def compute_current(self, states, v, params):
        return jnp.where(states["left"] > dt / 2, 0.0, -params["i_ext"])          # mA/cm2

    def init_state(self, states, v, params, delta_t):
        return {}


dt, area = 0.1, 20000e-8                            # ms, cm2
cell = jx.Cell(jx.Branch(jx.Compartment(), ncomp=1), parents=[-1])
net = jx.Network([cell] * 12)
net.insert(Leak())
net.insert(FireAndHold())
net.set("length", sqrt(20000 / pi))
net.set("radius", sqrt(20000 / pi) / 2)
net.set("capacitance", 1.0)
net.set("Leak_gLeak", 5e-5)
net.set("Leak_eLeak", -60.0)
net.set("v", -60.0)
net.set("i_ext", (0.09 + 0.02 * np.arange(12)) * 1e-6 / area)
net.record("fired")
fired = np.asarray(jx.integrate(net, delta_t=dt, t_max=500 + 2 * dt))
step = [np.flatnonzero(x) for x in fired]
spikes = [[(k - 1) * dt, i] for i, ks in enumerate(step) for k in ks]         # found at the beginning of the step
print(json.dumps({"spikes": spikes, "counts": [len(ks) for ks in step]}))
