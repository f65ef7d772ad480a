"""Adaptation by calcium in Jaxley: two channels, and its CaPump with a shell of 1 um."""
import json

import jax
import jax.numpy as jnp
import jaxley as jx
import numpy as np
from jaxley.channels import HH, Channel
from jaxley.pumps import CaPump
from jaxley.solver_gate import exponential_euler, solve_gate_exponential

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platform_name", "cpu")


def q_inf(v):
    return 1 / (1 + jnp.exp(-(v + 20) / 5))


class CaL(Channel):
    def __init__(self, name=None):
        self.current_is_in_mA_per_cm2 = True
        super().__init__(name)
        self.channel_params = {"CaL_gbar": 5e-5, "CaL_erev": 120.0}
        self.channel_states = {"CaL_q": 0.0}
        self.current_name = "i_Ca"              # which the pump reads

    def update_states(self, states, dt, v, params):
        return {"CaL_q": exponential_euler(states["CaL_q"], dt, q_inf(v), 1.0)}

    def compute_current(self, states, v, params):
        return params["CaL_gbar"] * states["CaL_q"] ** 2 * (v - params["CaL_erev"])

    def init_state(self, states, v, params, delta_t):
        return {"CaL_q": q_inf(v)}


class KCa(Channel):
    def __init__(self, name=None):
        self.current_is_in_mA_per_cm2 = True
        super().__init__(name)
        self.channel_params = {"KCa_gbar": 1e-3, "KCa_erev": -77.0}
        self.channel_states = {"KCa_c": 0.0, "CaCon_i": 5e-5}
        self.current_name = "i_KCa"

    def update_states(self, states, dt, v, params):
        return {"KCa_c": solve_gate_exponential(states["KCa_c"], dt, 50 * states["CaCon_i"], 0.05)}

    def compute_current(self, states, v, params):
        return params["KCa_gbar"] * states["KCa_c"] * (v - params["KCa_erev"])

    def init_state(self, states, v, params, delta_t):
        return {"KCa_c": states["CaCon_i"] / (states["CaCon_i"] + 1e-3)}


cell = jx.Compartment()
for mechanism in (HH(), CaL(), KCa(), CaPump()):
    cell.insert(mechanism)
cell.set("length", 20.0)
cell.set("radius", 10.0)
cell.set("capacitance", 1.0)
cell.set("CaPump_gamma", 1.0)
cell.set("CaPump_decay", 80.0)                  # ms
cell.set("CaPump_depth", 1.0)                   # um
cell.set("CaPump_minCaCon_i", 5e-5)             # mM
cell.set("CaCon_i", 5e-5)
cell.set("v", -65.0)
cell.init_states()
cell.stimulate(jx.step_current(i_delay=5, i_dur=90, i_amp=0.3, delta_t=0.005, t_max=100))
cell.record("v")
cell.record("CaCon_i")
v, ca = np.asarray(jx.integrate(cell, delta_t=0.005))[:, :20001]
crossed = np.flatnonzero((v[:-1] < 0) & (v[1:] >= 0)) + 1
print(json.dumps({"spikes": list(crossed * 0.005), "v": list(v[::20]), "ca": list(1e3 * ca[::20])}))
