"""
A private procedure that is not stable
======================================

A private search may compare procedures by a score only if one record moves that score by little
while the procedure's noise stays the same. One might hope that every differentially private
procedure is stable in this sense. Chaudhuri and Vinterbo (2013, section 6.1) show one that is
not, beside one that is. Here are both, under attack, with some corrections to the paper.
"""

# %%
# Two options get votes
# ---------------------
#
# A record is a pair of votes in [0, 1], one for each of two options, and :math:`f(D, i)` is the
# mean vote for option :math:`i`: one of :math:`n` records moves it by at most :math:`1/n`. Two
# procedures release a winner :math:`i^*` and noisy means :math:`t_1, t_2`. Both are
# :math:`\alpha`-differentially private, and the score of both is :math:`t_{i^*}`.
#
# - The first chooses :math:`i^*` by the exponential mechanism, with :math:`\alpha/2`: a uniform
#   sample :math:`r_0` goes through the inverse of its distribution function. It adds Laplace noise
#   to the means with the other :math:`\alpha/2`.
# - The second spends all of :math:`\alpha` on the noisy means, and :math:`i^*` is the larger one.
#
# The paper calls :math:`4/(\alpha n)` the standard deviation of the first procedure's noise; it
# has to be the scale, as in the formulas there. Noise with that standard deviation would cost
# :math:`1.21\,\alpha` in all.

# sphinx_gallery_thumbnail_path = "images/thumbnails/unstable.png"

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from dpselect.audit import stability_violation
from dpselect.noise import as_generator, laplace

n, alpha = 100, 0.5


def exponential_mechanism_first(r0, r):
    """The first procedure at fixed noise, as a function from the votes to the score."""

    def score_of(votes):
        f = votes.mean(axis=0)
        chance_of_the_first = expit(n * alpha * (f[0] - f[1]) / 4)
        winner = 0 if r0 <= chance_of_the_first else 1
        return f[winner] + 4 / (alpha * n) * r[winner]

    return score_of


def noisy_means_first(r):
    """The second procedure at fixed noise."""
    return lambda votes: np.max(votes.mean(axis=0) + 2 / (alpha * n) * r)


# %%
# The paper's pair of data sets
# -----------------------------
#
# All records vote for option 1 and half of them for option 2. One voter, who was for option 1
# only, is now for option 2 only.

votes = np.column_stack([np.ones(n), np.repeat([0.0, 1.0], n // 2)])
neighbour = votes.copy()
neighbour[0] = [0.0, 1.0]


def change(score_of):
    return abs(score_of(votes) - score_of(neighbour))


# %%
# The winner flips where :math:`r_0` lies between the two chances of option 1. The interval is as
# the paper has it. On the logit scale it is short to write, :math:`\operatorname{logit} r_0` from
# :math:`n\alpha/8 - \alpha/2` to :math:`n\alpha/8`:

low, high = expit(n * alpha / 8 - alpha / 2), expit(n * alpha / 8)
no_noise = np.zeros(2)
for r0 in (0.5, low - 1e-5, low + 1e-5, high - 1e-5, high + 1e-5):
    print(f"r0 = {r0:.5f}: change {change(exponential_mechanism_first(r0, no_noise)):.2f}")
print(f"the interval is {high - low:.1e} wide")

# %%
# In the interval one vote moves the score by almost 1/2, not by 1/100. But that is a rare sample,
# and soon absurdly rare: with :math:`n = 1000`, the interval is :math:`2\cdot10^{-28}` wide. A
# statement that may fail with probability :math:`10^{-6}` could leave it out.
#
# Attack all noise
# -----------------
#
# Stability asks for more: *one* set of good noise samples that serves *all* neighbours. So let us
# fix a noise sample and search the data sets, with :func:`dpselect.audit.stability_violation`.


def draw_records(rng, size):
    return rng.integers(2, size=(size, 2)).astype(float)


def largest_change(score_of):
    return stability_violation(score_of, draw_records, n, n_steps=20, random_state=0).change


uniform = expit(np.linspace(-8, 8, 33))
found = [largest_change(exponential_mechanism_first(r0, no_noise)) for r0 in uniform]

# %%
# For each noise sample there are data sets for which it is the one where the winner flips; the
# means then differ by :math:`4\,|\operatorname{logit} r_0| / (\alpha n)`. With the noise of the
# means, the largest change is
#
# .. math:: \frac{4}{\alpha n}\,|\operatorname{logit} r_0 + r_1 - r_2| + \frac1n
#
# as long as :math:`|\operatorname{logit} r_0| < n\alpha/4`, up to the rounding of votes. We take
# forty samples of all the noise and search at each, for both procedures. The generator has a seed
# so that this page stays the same; noise that protects somebody must not have one.

generator = as_generator(0)
samples = [(generator.random(), laplace(generator, 2)) for _ in range(40)]
first = np.sort([largest_change(exponential_mechanism_first(r0, r)) for r0, r in samples])
second = np.sort([largest_change(noisy_means_first(r)) for _, r in samples])
law = np.sort([4 / alpha * abs(logit(r0) + r[0] - r[1]) + 1 for r0, r in samples])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(
    logit(uniform),
    4 / (alpha * n) * np.abs(logit(uniform)) + 1 / n,
    "C1--",
    lw=1,
    label="first procedure: formula",
)
left.plot(logit(uniform), found, "C1o", ms=4, label="first procedure: worst neighbours found")
fine = np.linspace(-8.5, 8.5, 2000)
left.plot(
    fine,
    [change(exponential_mechanism_first(r0, no_noise)) for r0 in expit(fine)],
    "C0",
    lw=1.5,
    label="first procedure: the paper's neighbours",
)
left.axhline(1 / n, color="C2", ls=":", zorder=3, label="second procedure: at most 1/n")
marks = np.array([0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999])
left.set_xticks(logit(marks), [f"{mark:g}" for mark in marks])
left.set(
    xlabel="uniform sample $r_0$ (logit scale), $r_1 = r_2 = 0$",
    ylabel="change of the score",
    ylim=(0, 0.95),
    title="One record moves the score",
)
left.legend(loc="upper center", fontsize="small")

share = np.arange(1, len(samples) + 1) / len(samples)
right.step(n * second, share, "C2", where="post", label="second procedure, found")
right.plot(n * first, share, "C1o", ms=4, label="first procedure, found")
right.plot(law, share, "C1--", lw=1, label="first procedure, formula")
right.set(
    xscale="log",
    xlim=(0.5, 100),
    ylim=(0, 1.02),
    xlabel="n times the change",
    ylabel="share of samples below",
    title="All noise drawn, forty times",
)
right.set_xticks([1, 10, 100], ["1", "10", "100"])
right.legend(loc="lower right", fontsize="small")
plt.show()

# %%
# So the first procedure is unstable at almost every noise sample, not only at rare ones. On the
# other hand :math:`n` times the change does not grow with :math:`n`: if the statement may fail with
# probability :math:`\delta`, then :math:`\beta_1 = O(\log(1/\delta)/\alpha)` will do. What the
# paper excludes, a :math:`\beta_1 = o(n)`, is excluded only for a :math:`\delta` that is
# exponentially small in :math:`n\alpha`.

print(
    f"first procedure:  n times the change, median {n * np.median(first):.0f}, "
    f"largest {n * first[-1]:.0f}"
)
print(f"second procedure: n times the change, at most {n * second[-1]:.3f}")

# %%
# Why the second is stable
# ------------------------
#
# The paper says that where the second procedure's winner flips, the two means differ by at most
# :math:`1/n`. They need not: it is the *noisy* means that are close, and with :math:`f(D, 1) = 1`
# and :math:`f(D, 2) = 1/2` a flip is only a matter of noise. The reason is simpler. The score is a
# maximum, and no maximum moves by more than the number that moves most:
#
# .. math:: |t_{i^*} - t'_{i'^*}| = |\max_i t_i - \max_i t'_i| \le \max_i |t_i - t'_i| \le \frac1n.
#
# Stability belongs to the way in which noise becomes a model, not only to the law of the model.
# That is why a search in dpselect asks each estimator for a certificate and refuses those that
# have none.
