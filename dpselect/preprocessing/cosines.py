"""Cosines of numbers between 0 and 1, and of their multiples.

They are sums and products of whole blocks: several times as fast as numpy's cosine, so that a pass can
compute them anew, and the same to the last bit wherever in a block a number is.
"""

import numpy as np

# batch size, such that a few arrays stay in a processor's cache
CACHED = 1 << 15
# minimax polynomial of sin(pi t / 2) / t in t^2, from the highest power, with a largest error on
# [-1, 1] of 4e-19 (mpmath.chebyfit)
QUARTER_SINE = (
    5.87297574479995e-12,
    -6.684416831856085e-10,
    5.6921364280986254e-08,
    -3.5988430204672576e-06,
    0.0001604411847130916,
    -0.004681754135304255,
    0.07969262624616565,
    -0.6459640975062462,
    1.5707963267948966,
)


def cosine(z):
    """Return cos(pi z) of numbers z between 0 and 1, computed as sin(pi (1/2 - z))."""
    t = z * -2.0
    t += 1.0
    square = t * t
    found = square * QUARTER_SINE[0]
    for coefficient in QUARTER_SINE[1:-1]:
        found += coefficient
        found *= square
    found += QUARTER_SINE[-1]
    found *= t
    return found


def wave(z):
    """Return cos(2 pi z) and sin(2 pi z) of numbers z between 0 and 1; both are the same at 0 and 1."""
    u = z * 2.0
    u -= 1.0
    size = np.abs(u)
    # -cos(pi u) and -sin(pi u) = -sign(u) cos(pi (|u| - 1/2))
    return -cosine(size), -np.sign(u) * cosine(np.abs(size - 0.5))


def write_cosines(z, out, periodic=False):
    """Write k^(-1/2) cos(pi k z), k = 1, ..., K, of z of shape (p, b) into `out` of shape (p, K, b).

    With c = cos(pi z) they are Chebyshev's polynomials T_k of c, and T_(k + 1) = 2 c T_k - T_(k - 1).
    Of periodic numbers the features are i^(-1/2) times cos(2 pi z), sin(2 pi z), cos(4 pi z), and so on;
    they follow the same rule with c = cos(2 pi z).
    """
    at_a_time = max(1, CACHED // max(1, z.shape[1]))
    for start in range(0, len(z), at_a_time):
        some = slice(start, start + at_a_time)
        (_write_waves if periodic else _write)(z[some], out[some])


def _write_waves(z, out):
    first = wave(z)
    twice = 2.0 * first[0]
    for i, before in enumerate((1.0, 0.0)):
        now = first[i]
        for k in range(i, out.shape[1], 2):
            np.multiply(now, (k + 1) ** -0.5, out=out[:, k])
            before, now = now, twice * now - before


def _write(z, out):
    before, now = 1.0, cosine(z)
    out[:, 0] = now
    twice = 2.0 * now
    for k in range(2, out.shape[1] + 1):
        later = twice * now
        later -= before
        before, now = now, later
        np.multiply(now, k**-0.5, out=out[:, k - 1])
