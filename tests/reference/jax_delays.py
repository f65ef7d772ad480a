"""Gradients of a small recurrent spiking network in its delays, which lie between steps, by JAX's automatic differentiation in double precision.
What a spike brings is spread over the two steps beside its delay by a triangle, as in DCLS (Hammouamri, Khalfaoui-Hassani and Masquelier, ICLR 2024,
whose kernel is a Gaussian). A spike resets in the step in which it is sent. Needs jax."""

import math

import jax
import jax.numpy as jnp

from common import store, versions

jax.config.update("jax_enable_x64", True)
PIXELS, HIDDEN, OUT, TRIALS, STEPS = 5, 4, 3, 3, 20
TAU, SLOPE, LONGEST = 8.0, 4.0, 5


@jax.custom_jvp
def spike(x):
    return (x > 0).astype(jnp.float64)


@spike.defjvp
def spike_jvp(x, dx):
    return spike(x[0]), dx[0] / (1 + SLOPE * jnp.abs(x[0])) ** 2


# No cell is connected to itself.
OTHERS = 1.0 - jnp.eye(HIDDEN)


def weights(rows, columns, phase):
    """Weights that are no random numbers: [source][target]."""
    return jnp.array([[0.45 * math.sin(1.7 * i + 2.3 * j + phase) + 0.25 for j in range(columns)] for i in range(rows)])


def delays(rows, columns, phase):
    """Delays of 1.1 to 4.9 steps: [source][target]."""
    return jnp.array([[3 + 1.9 * math.sin(1.3 * i + 0.7 * j + phase) for j in range(columns)] for i in range(rows)])


def arriving(sent, step, w, d):
    """What arrives in a step; sent[k] are the spikes of step k, [trial][cell], nobody's in step 0."""
    total = 0.0
    for whole in range(1, LONGEST + 1):
        if step - whole >= 1:
            total = total + sent[step - whole] @ (w * jnp.maximum(0.0, 1 - jnp.abs(d - whole)))
    return total


def pixels(x):
    q, spikes = jnp.zeros_like(x), [jnp.zeros_like(x)]
    for _ in range(STEPS):
        q = q + x
        s = (q > 1.0).astype(jnp.float64)
        q = q - s
        spikes.append(s)
    return spikes


X = jnp.array([[0.15 + 0.8 * ((3 * b + 2 * i) % 7) / 7 for i in range(PIXELS)] for b in range(TRIALS)])
LABELS = jnp.array([b % OUT for b in range(TRIALS)])


def run(numbers, detached, read):
    (w_in, d_in), (w_rec, d_rec), (w_out, d_out) = numbers
    inputs, beta = pixels(X), math.exp(-1 / TAU)
    hidden, v = [jnp.zeros((TRIALS, HIDDEN))], jnp.zeros((TRIALS, HIDDEN))
    out, u, traces = [jnp.zeros((TRIALS, OUT))], jnp.zeros((TRIALS, OUT)), []

    def neuron(v, drive):
        v = beta * v + drive
        s = spike(v - 1.0)
        return s, v - (jax.lax.stop_gradient(s) if detached else s)

    for step in range(1, STEPS + 1):
        s, v = neuron(v, arriving(inputs, step, w_in, d_in) + arriving(hidden, step, w_rec * OTHERS, d_rec))
        so, u = neuron(u, arriving(hidden, step, w_out, d_out))
        hidden.append(s)
        out.append(so)
        traces.append(u)
    logits = sum(out) if read == "spike_count(out)" else sum(traces) / STEPS
    loss = -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(TRIALS), LABELS])
    return loss, sum(s.sum() for s in hidden + out + inputs)


def main():
    shapes = [(PIXELS, HIDDEN, 0.3), (HIDDEN, HIDDEN, 1.1), (HIDDEN, OUT, 2.0)]
    numbers = [(weights(*shape), delays(*shape)) for shape in shapes]
    cases = []
    for detached in [True, False]:
        for read in ["spike_count(out)", "mean(out.v)"]:
            (loss, spikes), slopes = jax.value_and_grad(run, has_aux=True)(numbers, detached, read)
            case = {"detached": detached, "loss": f"cross_entropy({read})", "value": float(loss), "spikes": int(spikes)}
            for name, (of_weights, of_delays) in zip(["pixels", "recurrent", "out"], slopes):
                case[name] = {"weights": of_weights.flatten().tolist(), "delays": of_delays.flatten().tolist()}
            cases.append(case)
    store("jax_delays", {"versions": versions("jax"), "cases": cases})


if __name__ == "__main__":
    main()
