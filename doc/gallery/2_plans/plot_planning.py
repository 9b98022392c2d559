"""
What epsilon do I need? Plans that read no record
=================================================

How many records does a private search need, and what privacy loss? Both can be answered before a
record is read, because the noise of a search follows from public numbers. We draw the answers for
three ways to search. (:doc:`plot_page` has a forecast of how good a single model will be.)
"""

# %%
# One plan
# --------
#
# Five kernels of different width, fifty random features, thirty columns. The plan takes the
# shapes only.

# sphinx_gallery_thumbnail_path = "images/thumbnails/planning.png"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import BoundedScaler

model = make_pipeline(
    BoundedScaler((0, 1)),
    RBFSampler(n_components=50),
    DPLogisticRegression(classes=[0, 1], data_norm=2**0.5),
)
grid = {"rbfsampler__gamma": [0.3, 0.03, 0.1, 1.0, 3.0]}
search = StabilityGridSearchCV(model, grid, epsilon=1.0)
print(search.plan(n_samples=20_000, n_features=30))

# %%
# The table at the end sets the strategies beside each other. "detects" is the difference of
# scores that the choice can see with probability one half or more; "of" is what a perfect model
# gains over one that says nothing. (Scores are of different kinds: least risks for
# ``optimal_risk``, mean squared errors of probabilities for the others.)
#
# Many plans
# ----------
#
# The ratio of the two, for growing data and four epsilons. At 1 not even a perfect model would
# be told from an empty one: a choice would be underpowered. A ratio of a tenth or less is worth
# having. Dots mark what ``strategy="auto"`` takes.

sizes = np.geomspace(300, 100_000, 6).round().astype(int)
epsilons = (0.1, 0.5, 2.0, 10.0)
strategies = ("optimal_risk", "random_stopping", "stability")
ratios = {strategy: np.full((len(epsilons), len(sizes)), np.nan) for strategy in strategies}
taken = np.empty((len(epsilons), len(sizes)), dtype=object)
for i, epsilon in enumerate(epsilons):
    for j, n in enumerate(sizes):
        plan = search.set_params(epsilon=epsilon).plan(n_samples=n, n_features=30)
        taken[i, j] = plan.strategy
        for row in plan.comparison:
            if row.strategy in strategies and not row.refusal:
                ratios[row.strategy][i, j] = row.minimum_detectable_difference / row.stake

figure, axes = plt.subplots(1, 3, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (strategy, values) in zip(axes, ratios.items()):
    ax.axhspan(1, 60, color="0.9")
    for i, epsilon in enumerate(epsilons):
        colour = plt.get_cmap("viridis")(0.85 * i / (len(epsilons) - 1))
        ax.plot(sizes, values[i], color=colour, lw=1.5, label=rf"$\varepsilon = {epsilon:g}$")
        here = taken[i] == strategy
        ax.plot(sizes[here], values[i][here], "o", color=colour, ms=5)
    ax.set(xscale="log", yscale="log", ylim=(0.001, 60), title=strategy)
    ax.set(xlabel="records $n$")
axes[0].text(330, 28, "underpowered", color="0.4")
axes[0].set(ylabel="detectable, of what there is to gain")
axes[2].legend(loc="lower left", fontsize="small")
plt.show()

# %%
# ``optimal_risk`` has a tenth of epsilon for the choice and compares risks that no noise has
# touched. Where it would see too little it does not serve, and its line begins later: there
# ``"auto"`` chooses nothing, and trains the first value of the grid with the whole of epsilon.
# ``random_stopping`` sees small differences of trained models, but those were trained with a third
# of epsilon on four fifths of the records. ``stability`` does not get better with more records
# here: the default ``alpha="auto"`` falls as :math:`1/n`, and one record moves the model as far
# as before.
#
# What it takes, in words
# -----------------------
#
# Where a choice is out of reach the messages of the plan say why, and if there are too few
# records for the model itself, how many it takes.

for n, epsilon in ((500, 1.0), (5_000, 1.0), (50_000, 1.0)):
    plan = search.set_params(epsilon=epsilon).plan(n_samples=n, n_features=30)
    print(f"{n} records, epsilon {epsilon:g}:")
    for message in plan.messages:
        print("  -", message)
