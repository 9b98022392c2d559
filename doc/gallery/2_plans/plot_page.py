"""
A plan as a page: what to expect of three tables
================================================

How many records, which epsilon, does a delta help? The plan of a search answers from public numbers,
before any record is read, and writes its answers as one page for those who decide. We make the page,
and draw its numbers for three tables.

.. image:: /images/plan-page.png
   :class: only-light
   :alt: The page of a plan, with controls on the left

.. image:: /images/plan-page-dark.png
   :class: only-dark
   :alt: The page of a plan, with controls on the left
"""

# %%
# The page
# --------
#
# A schema and the number of records are all that it takes. ``to_html()`` is one file that needs no
# network, and ``to_grid()`` has the same numbers for programs. ``dpselect plan --output plan.html``
# writes the page without Python.

# sphinx_gallery_thumbnail_path = "images/thumbnails/page.png"

import matplotlib.pyplot as plt
import numpy as np

from dpselect import DPLogisticRegression, StabilityGridSearchCV
from dpselect.preprocessing import tabular_pipeline

stays = {"age": (18, 100), "stays": (0, 10), "ward": list("ABCDEFGHIJ")}


def plan_of(schema, n, **parameters):
    model = tabular_pipeline(schema, DPLogisticRegression(classes=[0, 1], **parameters))
    return StabilityGridSearchCV(model, {}, epsilon=1.0).plan(n, len(schema))


plan = plan_of(stays, 20_000)
grid = plan.to_grid()
print(f"a page of {len(plan.to_html()) / 1000:.0f} kB, with plans for epsilon {grid['axes']['epsilon']}")

# %%
# In a notebook a plan shows its forecast by itself.

plan

# %%
# Three tables
# ------------
#
# What share of its gain in AUC over a constant is a model expected to keep? Eight of ten public tables
# that took no part in making the forecast were inside such bands. It is no promise.

answers = {f"question {i}": ["no", "rather", "yes"] for i in range(1, 9)}
accounts = {f"month {i}": (0, 10_000) for i in range(1, 13)}
tables = {
    "800 answers": (answers, 800),
    "20,000 stays": (stays, 20_000),
    "300,000 accounts, 1 % closed": (accounts, 300_000),
}
epsilons = np.geomspace(0.03, 10, 12)
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (name, (schema, n)) in zip(axes, tables.items()):
    given = {"base_rate": 0.01} if "closed" in name else {}
    bands = []
    for epsilon in epsilons:
        model = tabular_pipeline(schema, DPLogisticRegression(classes=[0, 1], **given))
        search = StabilityGridSearchCV(model, {}, epsilon=float(epsilon))
        kept = search.plan(n, len(schema)).expected_quality[0]
        bands.append((kept.low, kept.median, kept.high))
    low, median, high = np.transpose(bands)
    ax.fill_between(epsilons, low, high, alpha=0.25, lw=0)
    ax.plot(epsilons, median, lw=2)
    ax.set(title=name, xscale="log", xlabel="epsilon", ylim=(0, 1.02))
axes[0].set_ylabel("share of the gain in AUC")
plt.show()

# %%
# How well will it be known?
# --------------------------
#
# Records that are set aside tell how good the model is, for no more epsilon. Of a group of 300 people
# little is known at a small epsilon.

groups = grid["axes"]["group"]
for i, epsilon in enumerate(grid["axes"]["epsilon"][:4]):
    widths = [grid["groups"][i][groups.index(k)]["roc_auc"] or "-" for k in (300, 1000)]
    everyone = grid["evaluations"][i][grid["start"]["held"]][0]["roc_auc"]
    print(f"epsilon {epsilon:4}: AUC of 300 +-{widths[0]}, of 1000 +-{widths[1]}, of 5000 +-{everyone}")

# %%
# Leave a column out?
# -------------------
#
# A model without the column has as little noise as with so many times the records:

print({each["column"]: each["times"] for each in grid["without"][grid["start"]["epsilon"]]})
