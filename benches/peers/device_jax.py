"""What a device can do, by JAX: bytes per second in order, and seconds per kernel launch in a loop. One line of JSON."""
import argparse
import json
import os
import time

ap = argparse.ArgumentParser()
ap.add_argument("--platform", choices=("cpu", "cuda"), required=True)
ap.add_argument("--megabytes", type=int, default=1024, help="of the array that is read and written")
ap.add_argument("--launches", type=int, default=2000)
ap.add_argument("--repeat", type=int, default=10)
a = ap.parse_args()
os.environ["JAX_PLATFORMS"] = a.platform
import jax                                                              # noqa: E402
import jax.numpy as jnp                                                 # noqa: E402


def best(call, x):
    x = jax.block_until_ready(call(x))
    times = []
    for _ in range(a.repeat):
        t = time.perf_counter()
        x = jax.block_until_ready(call(x))
        times.append(time.perf_counter() - t)
    return min(times)


# Four passes in one call: what a call costs is not seen. Each is a kernel, for it needs its neighbour's old value.
def turn(_, x):
    return jnp.roll(x, 1)


large = jnp.arange(a.megabytes * 2**18, dtype=jnp.float32)
seconds = best(jax.jit(lambda x: jax.lax.fori_loop(0, 4, turn, x)), large)
rate = 4 * 2 * large.nbytes / seconds
del large
small = jnp.arange(1024, dtype=jnp.float32)
launch = best(jax.jit(lambda x: jax.lax.fori_loop(0, a.launches, turn, x)), small) / a.launches
print(json.dumps({"device": jax.devices()[0].device_kind, "bytes_per_s": rate, "turn_s": launch, "jax": jax.__version__}))
