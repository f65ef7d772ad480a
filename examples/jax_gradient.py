"""Conductances of many cells at once, each from a trace of its own, in a JAX program.

Sixteen squid axons differ in their sodium and potassium. JAX runs them, compares each with its trace, goes back through all steps (`jax.grad` through
`f.step`, which neuroc has differentiated), and moves every conductance with Adam.

Run it where `neuroc` and `jax` are installed: python examples/jax_gradient.py
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import neuroc

jax.config.update("jax_enable_x64", True)

CELLS, STEPS, DT = 16, 480, 0.025  # ms
rng = np.random.default_rng(1)
TRUE = {"squid.soma.Na.gbar": rng.uniform(100, 140, CELLS), "squid.soma.K.gbar": rng.uniform(30, 42, CELLS)}


def main(rounds: int = 400) -> None:
    model = neuroc.load(pathlib.Path(__file__).parent / "squid.neuro")
    # What differs from cell to cell is part of the state that JAX sees.
    model.set({"n": CELLS, "step.delay": 0, "Na.gbar": np.full(CELLS, 120.0), "K.gbar": np.full(CELLS, 36.0)})
    f = model.to_jax(duration=STEPS * DT, dt=DT)
    begin = f.init()

    def run(gbar: dict[str, jax.Array]) -> jax.Array:
        """The voltages of all cells in mV, shape [time, cell]."""
        _, v = jax.lax.scan(lambda state, _: (f.step(state)[0], state["squid.soma.v"]), {**begin, **gbar}, length=STEPS)
        return v

    target = run(TRUE)

    def loss(logarithms: dict[str, jax.Array]) -> jax.Array:
        return ((run({name: jnp.exp(x) for name, x in logarithms.items()}) - target) ** 2).mean()

    step = jax.jit(jax.value_and_grad(loss))
    x = {name: jnp.log(begin[name]) for name in TRUE}
    m, v = ({name: jnp.zeros(CELLS) for name in TRUE} for _ in range(2))  # what Adam remembers
    for k in range(1, rounds + 1):
        value, slopes = step(x)
        rate = 0.05 * (1 - k / rounds) ** 2
        for name, g in slopes.items():
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.95 * v[name] + 0.05 * g**2
            x[name] -= rate * m[name] / (1 - 0.9**k) / (jnp.sqrt(v[name] / (1 - 0.95**k)) + 1e-12)
        if k % (rounds // 5) == 0:
            print(f"round {k}: mean squared error {value:.2e} mV2")
    for name, true in TRUE.items():
        off = np.abs(np.exp(x[name]) / true - 1).max()
        print(f"{name}: at most {100 * off:.2g} % off in any cell, {100 * np.abs(begin[name] / true - 1).max():.0f} % at the start")


if __name__ == "__main__":
    main()
