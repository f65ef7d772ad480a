"""The inferior olive in JAX: jit, 40 Euler steps per call in a fori_loop, gather and scatter-add for junctions, CPU.

Options make it another number of steps, another form of junctions, or a GPU.
"""
import os

import numpy as np

import olive
import peer

a = olive.options([
    (("--platform",), dict(choices=("cpu", "cuda"), default="cpu")),
    (("--junctions",), dict(choices=("scatter", "sorted", "padded"), default="scatter",
                            help="scatter: as they were drawn; sorted: by target, segment_sum; padded: lists of neighbours")),
    (("--fused",), dict(type=int, default=olive.FUSED, help="steps in one call")),
    (("--unroll",), dict(type=int, default=1, help="steps in one turn of the loop"))])
if a.fused != olive.FUSED and not a.trust:
    raise SystemExit("the known answers are at multiples of 40 steps: --fused needs --trust")
olive.FUSED = a.fused
if a.platform == "cpu":
    olive.use_one_thread()
os.environ["JAX_PLATFORMS"] = a.platform
try:
    import jax
    import jax.numpy as jnp
except ImportError as e:
    peer.not_installed("jax", e)
jax.config.update("jax_enable_x64", a.precision == "f64")
derivative = olive.DERIVATIVE[a.form]
dtype = jnp.float64 if a.precision == "f64" else jnp.float32


def padded(src, tgt, cells):
    """Sources as `[row, cell]`, filled up with the cell itself, and which of them are junctions."""
    order = np.argsort(tgt, kind="stable")
    degree = np.bincount(tgt, minlength=cells)
    row = np.arange(len(tgt)) - np.repeat(np.cumsum(degree) - degree, degree)
    sources = np.tile(np.arange(cells), (degree.max(), 1))
    sources[row, tgt[order]] = src[order]
    return sources, np.arange(degree.max())[:, None] < degree


def make(state, src, tgt):
    apart = src is None
    if not apart:
        if a.junctions == "sorted":
            order = np.argsort(tgt, kind="stable")
            src, tgt = src[order], tgt[order]
        elif a.junctions == "padded":
            src, tgt = padded(src, tgt, state.shape[1])         # sources, whether there is such a junction
        src, tgt = jnp.asarray(src, jnp.int32), jnp.asarray(tgt, tgt.dtype if tgt.dtype == bool else jnp.int32)

    def gap(vd, src, tgt):
        if apart:
            return 0.0
        if a.junctions == "padded":
            return jnp.where(tgt, olive.junction(jnp, vd[src] - vd), 0).sum(axis=0)
        if a.junctions == "sorted":
            into = olive.junction(jnp, vd[src] - vd[tgt])
            return jax.ops.segment_sum(into, tgt, len(vd), indices_are_sorted=True)
        return jnp.zeros_like(vd).at[tgt].add(olive.junction(jnp, vd[src] - vd[tgt]), mode="promise_in_bounds")

    def step(s, src, tgt):
        new = derivative(jnp, s, gap(s[olive.VD], src, tgt))
        return s + olive.DT * jnp.stack(new) if a.form == "study" else tuple(x + olive.DT * d for x, d in zip(s, new))

    def fused(s, src, tgt):
        return jax.lax.fori_loop(0, olive.FUSED, lambda _, s: step(s, src, tgt), s, unroll=a.unroll)

    held = jnp.asarray(state, dtype) if a.form == "study" else tuple(jnp.asarray(x, dtype) for x in state)
    call = jax.jit(fused, donate_argnums=0).lower(held, src, tgt).compile()

    def advance(steps, fetch=True):
        nonlocal held
        for _ in range(steps // olive.FUSED):
            held = call(held, src, tgt)
        jax.block_until_ready(held)
        return np.array([np.asarray(x, np.float64) for x in held]) if fetch else None

    return advance


def used():
    """The most memory of the device that was in use, where JAX tells."""
    memory = jax.devices()[0].memory_stats() or {}
    return dict(device=jax.devices()[0].device_kind, peak_bytes=memory.get("peak_bytes_in_use"))


olive.measure(a, "jax", jax.__version__, make, used)
