"""The inferior olive in JAX: jit, 40 Euler steps per call in a fori_loop, gather and scatter-add for junctions, CPU."""
import os

import numpy as np

import olive
import peer

a = olive.options()
olive.use_one_thread()
os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import jax
    import jax.numpy as jnp
except ImportError as e:
    peer.not_installed("jax", e)
jax.config.update("jax_enable_x64", a.precision == "f64")
derivative = olive.DERIVATIVE[a.form]
dtype = jnp.float64 if a.precision == "f64" else jnp.float32


def make(state, src, tgt):
    apart = src is None
    if not apart:
        src, tgt = jnp.asarray(src, jnp.int32), jnp.asarray(tgt, jnp.int32)

    def gap(vd, src, tgt):
        if apart:
            return 0.0
        return jnp.zeros_like(vd).at[tgt].add(olive.junction(jnp, vd[src] - vd[tgt]), mode="promise_in_bounds")

    def step(s, src, tgt):
        new = derivative(jnp, s, gap(s[olive.VD], src, tgt))
        return s + olive.DT * jnp.stack(new) if a.form == "study" else tuple(x + olive.DT * d for x, d in zip(s, new))

    def fused(s, src, tgt):
        return jax.lax.fori_loop(0, olive.FUSED, lambda _, s: step(s, src, tgt), s)

    held = jnp.asarray(state, dtype) if a.form == "study" else tuple(jnp.asarray(x, dtype) for x in state)
    call = jax.jit(fused, donate_argnums=0).lower(held, src, tgt).compile()

    def advance(steps, fetch=True):
        nonlocal held
        for _ in range(steps // olive.FUSED):
            held = call(held, src, tgt)
        jax.block_until_ready(held)
        return np.array([np.asarray(x, np.float64) for x in held]) if fetch else None

    return advance


olive.measure(a, "jax", jax.__version__, make)
