"""
A private histogram: how wide should its bins be?
=================================================

A histogram with noise in its counts is the simplest private density. Narrow bins show more of the
shape, wide ones hide the noise better. We look at both ends, at the best width for each privacy
loss, and at how well a private search finds it when it may only look through noise.
"""

# %%
# The truth, and three widths
# ---------------------------
#
# Ten thousand numbers between 0 and 1, two thirds in a hill and one third in a peak. We know
# the density that they are drawn from; ``DPHistogramDensity`` does not. It counts the records
# in each bin and adds noise to each count. Replacing one record lowers one count by 1 and
# raises another, so the noise of a count is the same whatever the width: it weighs more where
# few records are in a bin.

# sphinx_gallery_thumbnail_path = "images/thumbnails/density.png"

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import beta

from dpselect import DPHistogramDensity, StabilityGridSearchCV

hill, peak = beta(2, 5), beta(80, 30)
rng = np.random.default_rng(0)
n = 10_000
in_peak = rng.random(n) < 1 / 3
X = np.where(in_peak, peak.rvs(n, random_state=rng), hill.rvs(n, random_state=rng))[:, None]


def truth(x):
    return 2 / 3 * hill.pdf(x) + 1 / 3 * peak.pdf(x)


fine = (np.arange(4000) + 0.5) / 4000  # no edge of a bin among them
true_values = truth(fine)
figure, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, sharey=True, layout="constrained")
for row, epsilon in zip(axes, (0.02, 0.5)):
    for ax, width in zip(row, (0.2, 0.05, 0.005)):
        density = DPHistogramDensity(epsilon, bin_width=width, bounds=(0, 1)).fit(X)
        ax.stairs(density.density_, density.bin_edges_[0], fill=True, color="C0", alpha=0.5)
        ax.plot(fine, true_values, "k", lw=1)
        ax.set(title=rf"$\varepsilon = {epsilon}$, bins of {width}", xlim=(0, 1), ylim=(0, 6))
for ax in axes[-1]:
    ax.set(xlabel="x")
for ax in axes[:, 0]:
    ax.set(ylabel="density")
plt.show()

# %%
# The black line is the truth. At the left the bins are too wide to show the peak, whatever the
# noise. At the right they are narrow, and it depends on :math:`\varepsilon` how much of what
# they show is noise.
#
# The best width
# --------------
#
# The distance from the truth, squared and integrated, for many widths and three privacy losses,
# and for exact counts; means over six samples of the noise. We can compute this because we know
# the truth.

widths = 1 / np.array([2, 5, 10, 20, 40, 80, 200, 400])


def squared_error(density):
    cell = np.searchsorted(density.bin_edges_[0], fine) - 1
    return np.mean((density.density_[cell] - true_values) ** 2)


def mean_error(epsilon, width):
    model = DPHistogramDensity(epsilon, bin_width=width, bounds=(0, 1))
    return np.mean([squared_error(model.fit(X)) for _ in range(6)])


epsilons = (0.1, 0.5, 2.5)
errors = {epsilon: [mean_error(epsilon, w) for w in widths] for epsilon in (*epsilons, np.inf)}

# %%
# A search
# --------
#
# The search scores each width by the same distance, up to a constant, on records that were held
# out. It knows how far one record can move such a score while the noise of the histogram stays
# the same; this is what the noise of its choice has to hide. Three tenths of :math:`\varepsilon` pay
# for the choice, the rest for the histogram. A width that is right for typical columns, by public
# numbers alone, has a head start: another one is taken if its score is clearly better.
#
# One record moves the score of narrow bins furthest, and the noise of the choice must hide that
# for all candidates alike. So widths that nobody needs make the choice worse. The plan says so
# before any record is read:

every, few = {"bin_width": widths}, {"bin_width": [0.05, 0.2, 0.1, 0.025]}
for grid in (every, few):
    search = StabilityGridSearchCV(DPHistogramDensity(bounds=(0, 1)), grid, epsilon=0.5)
    plan = search.plan(n, 1)
    detected = plan.minimum_detectable_difference
    ratio = detected / plan.stake
    print(f"{len(plan.params)} widths: detects {ratio:.2g} times what a perfect density gains")
print(search.fit(X).privacy_)

# %%
# Five searches for each :math:`\varepsilon` and each of the two grids; a mark is a released
# histogram, at the width that was chosen and with the error that it has.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, epsilon in zip(axes, epsilons):
    ax.plot(widths, errors[np.inf], "0.6", lw=1, label="exact counts")
    ax.plot(widths, errors[epsilon], "k.-", lw=1, label=r"all of $\varepsilon$ for one width")
    for grid, mark, name in ((every, "C1x", "search, 8 widths"), (few, "C0o", "search, 4 widths")):
        search = StabilityGridSearchCV(DPHistogramDensity(bounds=(0, 1)), grid, epsilon=epsilon)
        released = [search.fit(X).best_estimator_ for _ in range(5)]
        places = [density.bin_width * 1.05 ** (i % 3 - 1) for i, density in enumerate(released)]
        found = [squared_error(density) for density in released]
        ax.plot(places, found, mark, ms=6, mfc="none", label=name)
    ax.set(xscale="log", yscale="log", title=rf"$\varepsilon = {epsilon}$", xlabel="width of a bin")
    ax.set_xticks([0.0025, 0.01, 0.05, 0.2], ["0.0025", "0.01", "0.05", "0.2"])
    ax.minorticks_off()
axes[0].set(ylabel="squared error, integrated")
axes[0].legend(loc="upper center", fontsize="small")
plt.show()

# %%
# The best width is a matter of :math:`\varepsilon`: the smaller it is, the wider. What a search
# adds to the error has two causes: a part of the budget goes into the choice, and with a small
# epsilon the choice sees little. A ratio above 0.25, as printed above, is underpowered: the search
# still pays for the choice, mostly for that of the public rule. From 5 on, as with the long grid in
# the left panel, it does not choose: the width of the rule is taken, with all of epsilon. So leave
# out what you would not want, and if you know without the records how fine the shape is, give
# ``bin_width`` and keep the whole budget. A table of counts of two columns, one of categories, is
# on the page :doc:`/density`.
