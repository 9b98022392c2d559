"""
Several rows a person: protect the person
=========================================

A hospital has a row for each visit, a bank one for each payment. A promise about one row says little to
a person who has fifty. With the ids of the persons the same model protects all rows of one person.
The records are those of :doc:`plot_count`: three or five years of most persons.
"""

# %%
# Whose rows are they?
# --------------------
#
# With records of your own the ids are a column. In this table they were left out, but the years of one
# person stand together and share the plan and the index of diseases, so we can put ids back.

# sphinx_gallery_thumbnail_path = "images/thumbnails/persons.png"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import d2_tweedie_score
from statsmodels.datasets import randhie

from dpselect import DPPoissonRegressor, privacy_of
from dpselect.preprocessing import tabular_pipeline

years = randhie.load_pandas().data
same = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea"]
person = (years[same].diff().abs().sum(axis=1) != 0).cumsum().to_numpy()
visits = years["mdvis"].to_numpy()

schema = {
    "lncoins": (0, np.log(101)),
    "idp": (0, 1),
    "physlm": (0, 1),
    "disea": (0, 60),
    "hlthg": (0, 1),
    "hlthf": (0, 1),
    "hlthp": (0, 1),
}
X = years[list(schema)]
held_out = person % 5 == 0  # whole persons
print(f"{len(X)} rows, {len(np.unique(person))} persons")

# %%
# Rows, and persons
# -----------------
#
# ``fit`` takes the ids as ``groups``: of a ``tabular_pipeline``, of a model by itself, and of a search.
# (A ``Pipeline`` of scikit-learn wants the name of the step, ``model__groups``.) The statement names
# whom it protects, and a ledger must count the same: ``PrivacyLedger(path, epsilon=3.0,
# adjacency="replace all rows of one person")``.

model = tabular_pipeline(schema, DPPoissonRegressor(epsilon=1.0, target_bound=20.0))
rows = model.fit(X[~held_out], visits[~held_out])
print(privacy_of(rows))
persons = model.fit(X[~held_out], visits[~held_out], groups=person[~held_out])
print(privacy_of(persons))

# %%
# What it costs
# -------------
#
# A person counts as one record, the mean of their rows. So the model is about the mean over persons,
# which is not the mean over rows if people with many rows differ from others. And there is the noise
# of a table with as many records as there are persons. To protect persons *without* ids, a bound on
# their rows is needed: with at most thirty years each, a promise of :math:`\varepsilon/30` for a row is
# one of :math:`\varepsilon` for a person. The explained deviance on persons who were set aside:

epsilons = [0.3, 1, 3, 10]


def explained(epsilon, **groups):
    fitted = model.set_params(model__epsilon=epsilon).fit(X[~held_out], visits[~held_out], **groups)
    return d2_tweedie_score(visits[held_out], fitted.predict(X[held_out]), power=1)


ids = {"groups": person[~held_out]}
largest = np.bincount(person).max()
ways = {
    "the row, epsilon": ("C0", lambda epsilon: explained(epsilon)),
    "the person, epsilon, by ids": ("C1", lambda epsilon: explained(epsilon, **ids)),
    f"the person, epsilon / {largest} a row": ("C2", lambda epsilon: explained(epsilon / largest)),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, (colour, score) in ways.items():
    scores = np.array([[score(epsilon) for _ in range(5)] for epsilon in epsilons])
    ax.plot(epsilons, scores.mean(axis=1), "o-", color=colour, label=name)
    ax.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), color=colour, alpha=0.15, lw=0)
ax.set(
    xscale="log",
    xlabel=r"privacy loss $\varepsilon$ of what is protected",
    ylabel="explained deviance, held out",
    ylim=(-0.3, 0.12),
)
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend(title="protected")
plt.show()

# %%
# Protecting the person costs accuracy, as it should: there are four times fewer persons than rows. It
# costs far less than to divide epsilon by the largest number of rows, and no such number has to be
# known. More is on the page :doc:`/persons`.
