"""One inferior-olive cell (three compartments, 14 states, benchmark defaults): forward Euler, golden values.

I_app = 0, no gap junctions. Every update uses only the old state.
"""
import math

from common import linear_ratio, store, versions

DT = 0.025
NAMES = ("Vs", "k", "l", "hs", "n", "xs", "Va", "ha", "xa", "Vd", "Ca", "r", "s", "q")
INITIAL = (-60.0, 0.7423159, 0.0321349, 0.3596066, 0.2369847, 0.1, -60.0, 0.9, 0.2369847,
           -60.0, 3.715, 0.0113, 0.0049291, 0.0337836)
# the golden table as printed (12 significant digits)
GOLDEN = {
    1: "-59.9177556009 0.737739107435 0.0321430641992 0.358659857626 0.23687123513 0.0974128275651 -60.2558248131 "
       "0.896363362908 0.226001624104 -60.0335757514 3.7157915425 0.0113193533951 0.0049290999317 0.0337819808851",
    40: "-58.243394367 0.66844489263 0.0323682366233 0.320140108361 0.23250052543 0.0673819668734 -59.4112060813 "
        "0.782252401507 0.0717979645031 -60.965495 3.76334813475 0.0118713865069 0.00492951405066 0.0337232297052",
    4000: "-62.3814983861 0.414325497492 0.0430532206374 0.217537270945 0.0379246392119 0.0472992323041 "
          "-61.1755080054 0.556415382 0.0523293018388 -65.9909144221 2.76775452708 0.00869440317909 "
          "0.00597268743718 0.0304419485087",
    40000: "-43.9675669312 0.984351021431 0.0338500340347 0.00958525165817 0.00892525643087 0.189154169391 "
           "-46.9591784463 0.0916206229539 0.15478048756 -56.4378915032 10.2486593855 0.0216510983156 "
           "0.00599080646931 0.0218338832014",
}


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def derivative(y):
    e = math.exp
    vs, k, l, hs, n, xs, va, ha, xa, vd, ca, r, s, q = y
    ena, ek, eca, eh, el, g_int, p1, p2 = 55.0, -75.0, 120.0, -43.0, 10.0, 0.13, 0.25, 0.15
    ax = lambda v: 1.3 * linear_ratio((v + 25.0) / 10.0)
    bx = lambda v: 1.69 * e(-(v + 35.0) / 80.0)
    m_inf = lambda v: sigmoid((v + 30.0) / 5.5)

    i_s = (0.016 * (vs - el) + g_int / p1 * (vs - vd) + g_int / (1 - p2) * (vs - va) + 1.1 * k**3 * l * (vs - eca)
           + 150.0 * m_inf(vs)**3 * hs * (vs - ena) + 9.0 * n**4 * (vs - ek) + 5.0 * xs**4 * (vs - ek))
    tau_l = 35.0 + 20.0 * e((vs + 160.0) / 30.0) / (1.0 + e((vs + 84.0) / 7.3))

    i_a = (0.016 * (va - el) + g_int / p2 * (va - vs) + 240.0 * m_inf(va)**3 * ha * (va - ena)
           + 240.0 * xa**4 * (va - ek))

    i_cah = 4.5 * r**2 * (vd - eca)
    i_d = (0.01532 * (vd - el) + g_int / (1 - p1) * (vd - vs) + i_cah + 35.0 * s * (vd - ek) + 0.12 * q * (vd - eh))
    ar = 1.7 * sigmoid((vd - 5.0) / 13.9)
    br = 0.1 * linear_ratio(-(vd + 8.5) / 5.0)
    return (-i_s,
            sigmoid((vs + 61.0) / 4.2) - k,
            (sigmoid(-(vs + 85.0) / 8.5) - l) / tau_l,
            (sigmoid(-(vs + 70.0) / 5.8) - hs) / (3.0 * e(-(vs + 40.0) / 33.0)),
            (sigmoid((vs + 3.0) / 10.0) - n) / (5.0 + 47.0 * e((vs + 50.0) / 900.0)),
            ax(vs) * (1 - xs) - bx(vs) * xs,
            -i_a,
            (sigmoid(-(va + 60.0) / 5.8) - ha) / (1.5 * e(-(va + 40.0) / 33.0)),
            ax(va) * (1 - xa) - bx(va) * xa,
            -i_d,
            -3.0 * i_cah - 0.075 * ca,
            0.2 * (ar * (1 - r) - br * r),
            min(2e-5 * ca, 0.01) * (1 - s) - 0.015 * s,
            (sigmoid(-(vd + 80.0) / 4.0) - q) * (e(-0.086 * vd - 14.6) + e(0.070 * vd - 1.87)))


def main():
    y = INITIAL
    d0 = derivative(y)
    out, worst = {}, 0.0
    for step in range(1, 40001):
        d = derivative(y)
        y = tuple(a + DT * b for a, b in zip(y, d))
        if step in GOLDEN:
            out[str(step)] = dict(zip(NAMES, y))
            for name, got, printed in zip(NAMES, y, GOLDEN[step].split()):
                # one unit in the 12th significant digit: expressions ordered differently round differently, and
                # 40000 steps carry that to the last printed digit
                unit = 10.0 ** (math.floor(math.log10(abs(got))) - 11)
                off = abs(got - float(printed)) / unit
                worst = max(worst, off)
                assert off <= 1.0, (step, name, got, printed)
    store("io_cell_facts", {
        "what": "one inferior-olive cell, forward Euler, dt 0.025 ms, I_app 0, no gap junctions; after n steps",
        "dt_ms": DT, "initial": dict(zip(NAMES, INITIAL)), "initial_derivative_per_ms": dict(zip(NAMES, d0)),
        "after_steps": out, "versions": versions(),
    })
    print("largest distance from the golden table, in units of its 12th digit:", worst)


if __name__ == "__main__":
    main()
