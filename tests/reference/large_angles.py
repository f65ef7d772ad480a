"""Sine and cosine of angles of every size, and the digits of 2/pi, from arbitrary precision.

The angles: for every exponent one that is (almost) as near to a multiple of pi/2 as the format allows, which is where the
reduction cancels most digits; powers of two and of ten; both sides of the limits past which neuroc reduces in another way;
the largest numbers; random ones; and those of all f32 where neuroc's results were found furthest from the exact ones.
"""
import math
import random
import struct

from mpmath import mp, mpf

from common import store, versions

# per format: bits of the mantissa, largest exponent, exponent of the limit, random angles over all sizes and just past the limit
FORMATS = {"f64": (53, 1024, 30, 2000, 300), "f32": (24, 128, 16, 1000, 100)}
# f32, as bits: the largest errors of sin, cos and tan up to the limit, and past it, among all numbers
FURTHEST = [0x464E12A1, 0x472B3BF6, 0x4753EA98, 0x6156518B, 0x523DC8A3, 0x582E0CDA]
DIGITS = 1500                                       # binary digits with which continued fractions are computed
BITS, MORE_BITS = 200, 3000                         # precision of the values, and of a second computation


def nearest_angle(mantissa, exponent):
    """m 2^exponent with `mantissa` bits in m that is near a multiple of pi/2: (distance in quarter turns, m).

    The convergents and intermediate fractions of 2^exponent 2/pi, and multiples of the former, are its candidates.
    """
    scale = 1 << DIGITS
    alpha = int(mp.floor(2 / mp.pi * mpf(2) ** (exponent + DIGITS)))
    low, high = 1 << (mantissa - 1), 1 << mantissa
    p, q, before, now = scale, alpha % scale, 0, 1  # what is left of the fraction; the last two denominators
    candidates = []
    while q and now < high:
        candidates.append(-(-low // now) * now)
        a = p // q
        candidates += [before + now * j for j in (max(1, -((before - low) // now)), a) if j <= a]
        before, now = now, before + a * now
        p, q = q, p % q
    return min((min(m * alpha % scale, -m * alpha % scale) / scale, m) for m in candidates if low <= m < high)


def angles(name):
    """All angles of a format, and the one of them that is nearest to a multiple of pi/2."""
    mantissa, top, limit, everywhere, past = FORMATS[name]
    generator = random.Random(1)

    def drawn(exponents):
        size = math.ldexp((1 << mantissa - 1) + generator.getrandbits(mantissa - 1), generator.choice(exponents) - mantissa + 1)
        return -size if generator.getrandbits(1) else size

    exponents = range(1 - mantissa, top - mantissa + 1)
    near = [(*nearest_angle(mantissa, exponent), exponent) for exponent in exponents]
    found = [math.ldexp(m, exponent) for _, m, exponent in near]
    edge, step = 2.0 ** limit, 2.0 ** (limit - mantissa + 1)
    found += [edge - 1, edge - step / 2, edge, edge + step, edge + 1, -edge, -edge - step, -edge - 1]
    found += [2.0 ** exponent for exponent in range(limit + 1, top, 7)]
    found += [as_format(name, 10.0 ** k) for k in [*range(3, 23), *range(30, 309, 10)] if 10.0 ** k < 2.0 ** (top - 1)]
    largest = math.ldexp((1 << mantissa) - 1, top - mantissa)
    found += [largest, -largest]
    found += [drawn(range(limit, top)) for _ in range(everywhere)]
    found += [drawn(range(limit, mantissa)) for _ in range(past)]
    found += [struct.unpack("<f", struct.pack("<I", bits))[0] for bits in FURTHEST if name == "f32"]
    distance, m, exponent = min(near)
    return found, {"m": m, "exponent": exponent, "quarter_turns": distance}


def as_format(name, x):
    """The nearest number of the format."""
    return x if name == "f64" else struct.unpack("<f", struct.pack("<f", x))[0]


def with_tail(exact):
    """The nearest number, and the rest to three digits."""
    head = float(exact)
    return [head, float(f"{float(exact - head):.3g}")]


def main():
    mp.prec = DIGITS + 64
    words = int(mp.floor(2 / mp.pi * mpf(2) ** (64 * 19)))
    out = {"what": "per angle in radians: f64: sin, tail of it, cos, tail of it; f32: sin, cos",
           "two_over_pi": [f"{words >> 64 * (18 - k) & (1 << 64) - 1:016x}" for k in range(19)]}
    worst, difference = {}, 0.0
    for name in FORMATS:
        mp.prec = DIGITS + 64
        found, worst[name] = angles(name)
        rows = {}
        for x in found:
            values = []
            for f in (mp.sin, mp.cos):
                mp.prec = MORE_BITS
                again = f(mpf(x))
                mp.prec = BITS
                exact = f(mpf(x))
                difference = max(difference, float(abs(exact / again - 1)))
                values += with_tail(exact) if name == "f64" else [float(f"{float(exact):.11g}")]
            rows[repr(x) if name == "f64" else f"{x:.9g}"] = values
        out[name] = rows
    # The hardest angles are known: Muller, Elementary Functions (the chapter on range reduction).
    assert (worst["f64"]["m"], worst["f64"]["exponent"]) == (6381956970095103, 797), worst
    assert (worst["f32"]["m"], worst["f32"]["exponent"]) == (16367173, 72), worst
    store("large_angles", out | {"nearest_to_a_quarter_turn": worst, "cross_check": difference,
                                 "versions": versions("mpmath")})


if __name__ == "__main__":
    main()
