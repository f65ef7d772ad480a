"""A squid axon in a closed loop with Python: an environment reads its spikes and writes the current that it receives.

The controller wants 75 spikes a second. After every step of 0.01 ms it compares a running estimate of the rate with that, and moves the
current in small steps. Run it where `neuroc` is installed: python examples/closed_loop.py
"""

import pathlib
import time

import neuroc

WANTED = 75.0  # spikes per second
TAU = 50.0  # ms, of the estimate
SECONDS = 3.0  # of the axon's time


def main() -> None:
    model = neuroc.load(pathlib.Path(__file__).with_name("squid.neuro"))
    model.set({"step.delay": 0, "step.duration": "10 s"})
    with model.simulator(threads=1) as axon:
        current, rate, late = 6.0, 0.0, 0
        steps = round(SECONDS * 1000 / axon.dt)
        begin = time.perf_counter()
        for step in range(steps):
            axon["step.amplitude"] = current
            spikes = axon.step()
            rate += spikes * 1000 / TAU - rate * axon.dt / TAU
            current = min(max(current + 4e-6 * (WANTED - rate), 0.0), 60.0)
            if step >= steps // 2:
                late += spikes
        took = time.perf_counter() - begin
    print(f"{late / (SECONDS / 2):.0f} spikes per second in the second half, at {current:.1f} uA/cm2")
    print(f"{steps / took:.0f} steps per second")


if __name__ == "__main__":
    main()
