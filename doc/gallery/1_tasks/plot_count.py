"""
Count: how often do people see a doctor?
========================================

The RAND Health Insurance Experiment gave families insurance plans by lot, and counted their visits to
a doctor, year by year (Deb and Trivedi, *The Structure of Demand for Health Care*, 2002, whose table
of 20,190 years we use). We predict the visits of a year from the plan and from how ill somebody is.
"""

# %%
# What is known without the records
# ---------------------------------
#
# The plans are the experimenters'. Health is what a questionnaire asks. A count needs one more
# public number, ``target_bound``: a count that few exceed. Larger counts are clipped to it, and the
# noise is proportional to it. Twenty visits a year are many.

# sphinx_gallery_thumbnail_path = "images/thumbnails/count.png"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import d2_tweedie_score
from statsmodels.datasets import randhie

from dpselect import DPPoissonRegressor, TermsDisplay, privacy_of
from dpselect.preprocessing import tabular_pipeline

health = ["excellent", "good", "fair", "poor"]
schema = {
    "share": ["0", "25", "50", "95", "100"],  # percent of the costs that people paid themselves
    "deductible": ["no", "yes"],
    "limited": ["no", "yes"],  # a physical limitation
    "diseases": (0, 60),  # an index of chronic diseases
    "health": health,
}

years = randhie.load_pandas().data
visits = years["mdvis"].to_numpy()
X = years.assign(
    share=np.expm1(years["lncoins"]).round().astype(int),
    deductible=np.where(years["idp"] == 1, "yes", "no"),
    limited=np.where(years["physlm"] > 0.5, "yes", "no"),
    diseases=years["disea"],
    health=np.select([years[f"hlth{letter}"] == 1 for letter in "gfp"], health[1:], health[0]),
)[list(schema)]
held_out = np.arange(len(X)) // 500 % 5 == 0  # blocks, as the years of one person stand together

# %%
# One model
# ---------

regression = DPPoissonRegressor(epsilon=1.0, target_bound=20.0)
model = tabular_pipeline(schema, regression).fit(X[~held_out], visits[~held_out])
print(privacy_of(model))

# %%
# Epsilon protects one *year* of a person here. A person with five years in the table has epsilon 5; the
# page :doc:`plot_persons` protects the person instead.
#
# What the model says
# -------------------
#
# What each column adds to the logarithm of the expected number of visits: 0.3 is a third more. Few
# people have an index of diseases above 30, and there the curve follows the noise and the little that is
# known.

TermsDisplay.from_estimator(model).plot(n_cols=2)
plt.show()

# %%
# How good is it, and what is the bound worth?
# --------------------------------------------
#
# Visits are hard to predict, with or without privacy. The share of the deviance that is explained,
# on years that were set aside (the records are public, so we may fit often):

epsilons, bounds = [0.1, 0.3, 1, 3], [5.0, 20.0, 77.0]


def explained(epsilon, target_bound):
    settings = {"model__epsilon": epsilon, "model__target_bound": target_bound}
    fitted = model.set_params(**settings).fit(X[~held_out], visits[~held_out])
    return d2_tweedie_score(visits[held_out], fitted.predict(X[held_out]), power=1)


figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for target_bound in bounds:
    scores = [np.mean([explained(epsilon, target_bound) for _ in range(4)]) for epsilon in epsilons]
    ax.plot(epsilons, scores, "o-", label=f"target_bound={target_bound:g}")
ax.axhline(explained(np.inf, 77.0), color="k", ls="--", lw=1, label="no privacy")
ax.axhline(0, color="0.6", lw=1)
ax.set(xscale="log", xlabel=r"privacy loss $\varepsilon$", ylabel="explained deviance, held out")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# 77 is the largest count of the table: no count would be clipped, and the noise is largest. With 5 the
# noise is small, and people who see a doctor often count as if they did not. A bound from knowledge of
# the field that clips a few counts serves best.
