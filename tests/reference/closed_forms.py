"""Models whose solution is a formula: gates and membranes at fixed inputs, refractory times, sums of inputs, spikes of
leaky integrate-and-fire cells. The models are the `.neuro` files of the same names in tests/models/.
"""
import math

from common import exp_linear_rate, exp_rate, sigmoid_rate, store, versions

exp = math.exp


def relax(x0, inf, tau, t):
    return inf + (x0 - inf) * exp(-t / tau)


def clamped_gates():
    """Squid gates from 0.25 at fixed voltage, rates three times faster (q10 3, 16.3 degC)."""
    vs = [-100.0 + 20.0 * k for k in range(9)]
    ts = [0.4 * k for k in range(11)]
    rates = {"m": lambda v: (exp_linear_rate(v, 1.0, -40.0, 10.0), exp_rate(v, 4.0, -65.0, -18.0)),
             "h": lambda v: (exp_rate(v, 0.07, -65.0, -20.0), sigmoid_rate(v, 1.0, -35.0, 10.0)),
             "n": lambda v: (exp_linear_rate(v, 0.1, -55.0, 10.0), exp_rate(v, 0.125, -65.0, -80.0))}
    out = {"v_mV": vs, "t_ms": ts}
    for gate, of in rates.items():
        ab = [of(v) for v in vs]
        out[gate] = [[relax(0.25, a / (a + b), 1.0 / (3.0 * (a + b)), t) for a, b in ab] for t in ts]
    return out


def passive():
    """gbar 0.05 mS/cm2, cm 1 uF/cm2: tau 20 ms; 1 uA/cm2 between 50 and 100 ms moves the resting point by 20 mV."""
    ts = [5.0 * k for k in range(31)]
    at50 = relax(-50.0, -70.0, 20.0, 50.0)
    at100 = relax(at50, -50.0, 20.0, 50.0)
    v = [relax(-50.0, -70.0, 20.0, t) if t <= 50.0 else relax(at50, -50.0, 20.0, t - 50.0) if t <= 100.0
         else relax(at100, -70.0, 20.0, t - 100.0) for t in ts]
    return {"t_ms": ts, "v_mV": v}


def fractions_and_pools():
    ts = [4.0 * k for k in range(11)]
    ca = [relax(6.0, 0.1, 30.0, t) for t in ts]
    h = [0.7 * relax(1.0, 0.2, 6.0, t) + 0.3 * relax(1.0, 0.0, 40.0, t) for t in ts]       # q10 0.5: twice as slow
    return {"t_ms": ts, "ca_uM": ca, "h": h, "s": [c / (c + 2.0) for c in ca]}


def refractory():
    """v climbs 0.25 mV per step of 0.25 ms from -70 mV to -65 mV; then it is held for 12 steps (cell 0) or none (cell 1)."""
    out = {"t_ms": [float(k) for k in range(41)]}
    for cell, held_steps in ((0, 12), (1, 0)):
        v, x, left, spikes, vs, xs = -70.0, 0.0, 0, [], [-70.0], [0.0]
        for step in range(1, 161):
            x += 0.25
            if left:
                left -= 1
            else:
                v += 0.25
                if v >= -65.0:
                    spikes.append(0.25 * step)
                    v, x, left = -70.0, x - 1.0, held_steps
            if step % 4 == 0:
                vs.append(v)
                xs.append(x)
        out[f"cell_{cell}"] = {"spikes_ms": spikes, "v_mV": vs, "x_mV": xs}
    return out


def lif_fi():
    """The closed form of point_cells.json; a step of 0.01 ms delays each spike to the end of the step it falls into."""
    dt, tau, refractory, duration = 0.01, 20.0, 5.0, 400.0
    rows = []
    for i in (0.11, 0.15, 0.2, 0.3, 0.5, 1.0):
        steps = tau * math.log(100.0 * i / (100.0 * i - 10.0)) / dt
        assert 1e-6 < steps % 1.0 < 1.0 - 1e-6                      # otherwise rounding decides
        climb, hold = math.ceil(steps), round(refractory / dt)
        k, spikes = climb, []
        while k <= round(duration / dt):
            spikes.append(k * dt)
            k += hold + climb
        rows.append({"i_nA": i, "spikes_ms": spikes, "interval_ms": (hold + climb) * dt})
    return rows


def inputs():
    """Sums over steps of 0.125 ms of each input as it is at the start of the step."""
    dt, ts = 0.125, [float(k) for k in range(13)]

    def series(t):
        points = [(0.0, 0.0), (1.0, 0.0), (3.0, 4.0), (7.0, 4.0), (9.0, -2.0), (12.0, -2.0)]
        for (a, x), (b, y) in zip(points, points[1:]):
            if t <= b:
                return x + (y - x) * (t - a) / (b - a)
        raise ValueError(t)

    def pulse(t, delay, duration, amplitude):
        return amplitude if delay <= t < delay + duration else 0.0

    def total(f):
        sums, x = [0.0], 0.0
        for k in range(96):
            x += dt * f(k * dt)
            if k % 8 == 7:
                sums.append(x)
        return sums

    return {"t_ms": ts,
            "p": [total(lambda t, c=c: pulse(t, 2.0, 3.0, 0.5 + c)) for c in range(3)],
            "q": total(lambda t: 2.0 * math.sin(2.0 * math.pi * (t - 1.0) / 8.0 + 0.5) if 1.0 <= t < 21.0 else 0.0),
            "r": total(lambda t: 1.0 + 2.0 * (t - 1.0) / 4.0 if 1.0 <= t < 5.0 else 0.0),
            "s": total(lambda t: 2.0 * series(t)),
            "u": [total(lambda t, c=c: pulse(t, 0.0, 1.0, 1.0) + (pulse(t, 0.5, 1.0, 2.0) if c else 0.0)) for c in range(3)]}


def main():
    store("closed_forms", {
        "what": "solutions by formula of the models of the same names in tests/models/",
        "clamped_gates": clamped_gates(), "passive": passive(), "fractions_and_pools": fractions_and_pools(),
        "refractory": refractory(), "lif_fi": lif_fi(), "inputs": inputs(), "versions": versions(),
    })


if __name__ == "__main__":
    main()
