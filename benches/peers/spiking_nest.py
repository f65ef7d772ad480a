"""NEST: coba with iaf_cond_exp, which solves with an adaptive Runge-Kutta method, brunel with iaf_psc_delta, exactly."""
import time

import peer
import spiking

a = spiking.options()
try:
    import nest
    import numpy as np
except ImportError as e:
    peer.not_installed("nest", e)
nest.verbosity = nest.VerbosityLevel.ERROR
nest.local_num_threads = 1
nest.resolution = spiking.DT
nest.rng_seed = a.seed


def synapses(name, weight):
    """A type of synapse with one weight for all, the least that NEST can store."""
    nest.CopyModel("static_synapse_hom_w", name, {"weight": weight})
    return name


def coba(cells, excitatory, degree):
    p, rng = spiking.COBA, np.random.default_rng(a.seed)
    group = nest.Create("iaf_cond_exp", cells, params={
        "C_m": p["C_pF"], "g_L": p["gL_nS"], "E_L": p["El_mV"], "E_ex": p["Ee_mV"], "E_in": p["Ei_mV"], "V_th": p["Vt_mV"],
        "V_reset": p["Vr_mV"], "t_ref": p["refractory_ms"], "tau_syn_ex": p["tau_e_ms"], "tau_syn_in": p["tau_i_ms"]})
    group.set({"V_m": rng.normal(*p["v_init_mV"], cells), "g_ex": rng.normal(*p["ge_init_nS"], cells),
               "g_in": rng.normal(*p["gi_init_nS"], cells)})
    rule = {"rule": "pairwise_bernoulli", "p": degree / cells}
    for source, name, weight in ((group[:excitatory], "excitatory", p["we_nS"]), (group[excitatory:], "inhibitory", -p["wi_nS"])):
        nest.Connect(source, group, rule, {"synapse_model": synapses(name, weight), "delay": p["delay_ms"]})
    return group


def brunel(cells, excitatory, degree):
    p = spiking.BRUNEL
    group = nest.Create("iaf_psc_delta", cells, params={
        "tau_m": p["tau_ms"], "E_L": 0.0, "V_m": 0.0, "V_th": p["Vt_mV"], "V_reset": p["Vr_mV"], "t_ref": p["refractory_ms"]})
    for source, name, weight, each in ((group[:excitatory], "excitatory", p["j_mV"], 4 * degree // 5),
                                       (group[excitatory:], "inhibitory", -p["g"] * p["j_mV"], degree // 5)):
        rule = {"rule": "fixed_indegree", "indegree": each, "allow_multapses": False, "allow_autapses": False}
        nest.Connect(source, group, rule, {"synapse_model": synapses(name, weight), "delay": p["delay_ms"]})
    drive = nest.Create("poisson_generator", {"rate": p["drive_kHz"] * 1000})
    nest.Connect(drive, group, "all_to_all", {"synapse_model": "excitatory", "delay": p["delay_ms"]})
    return group


t = time.perf_counter()
group = {"coba": coba, "brunel": brunel}[a.model](*spiking.scaled(a))
recorder = nest.Create("spike_recorder")
nest.Connect(group, recorder)
nest.Prepare()                                  # sorts the connections, makes the buffers
setup = time.perf_counter() - t
t, busy = time.perf_counter(), time.process_time()
nest.Run(spiking.steps(a) * spiking.DT)
run, busy = time.perf_counter() - t, time.process_time() - busy
nest.Cleanup()
events = recorder.events
spiking.report("nest", nest.__version__, a, "f64", 0.0, setup, run, events["times"], events["senders"] - group[0].global_id,
               processor_s=round(busy, 5))
