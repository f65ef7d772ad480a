"""JAX: jit, 40 exponential-Euler steps per call in a lax.fori_loop, CPU."""
import os
import time

import peer

a = peer.options(("f64", "f32"))
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import jax
    import jax.numpy as jnp
except ImportError as e:
    peer.not_installed("jax", e)
jax.config.update("jax_enable_x64", a.precision == "f64")
FUSED = 40
assert a.steps % FUSED == 0


def ratio(x):
    """x / (1 - exp(-x)), 1 at x = 0."""
    return jnp.where(x == 0, 1, x / (1 - jnp.exp(-x)))


def gate(x, alpha, beta):
    total = alpha + beta
    inf = alpha / total
    return inf + (x - inf) * jnp.exp(-peer.DT * total)


def step(_, s):
    v, m, h, n = s
    g_na, g_k = peer.G_NA * m * m * m * h, peer.G_K * (n * n) * (n * n)
    g = g_na + g_k + peer.G_L
    v_inf = (g_na * peer.E_NA + g_k * peer.E_K + peer.G_L * peer.E_L + peer.STIM) / g
    return (v_inf + (v - v_inf) * jnp.exp(-peer.DT / peer.CM * g),
            gate(m, ratio((v + 40) / 10), 4 * jnp.exp(-(v + 65) / 18)),
            gate(h, 0.07 * jnp.exp(-(v + 65) / 20), 1 / (1 + jnp.exp(-(v + 35) / 10))),
            gate(n, 0.1 * ratio((v + 55) / 10), 0.125 * jnp.exp(-(v + 65) / 80)))


t = time.perf_counter()
v = peer.initial_v(a.cells)
dtype = jnp.float64 if a.precision == "f64" else jnp.float32
state = tuple(jnp.asarray(x, dtype) for x in (v, *peer.steady_gates(v)))
fused = jax.jit(lambda s: jax.lax.fori_loop(0, FUSED, step, s), donate_argnums=0).lower(state).compile()
setup = time.perf_counter() - t
means = []


def run():
    global state
    t = time.perf_counter()
    for _ in range(a.steps // FUSED):
        state = fused(state)
    state[0].block_until_ready()
    t = time.perf_counter() - t
    means.append(state[0].mean())
    return t


peer.report("jax", jax.__version__, a, setup, peer.timed(run, a.repeat), means[0])
