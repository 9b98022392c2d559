"""
A statistics office: one survey, one year
=========================================

An office has a survey of 30,000 persons with weights, and publishes from it all year: a table in
spring, a model of incomes with confidence intervals in summer. One ledger keeps the total, and at the
end of the year its report says what the year has cost everyone who answered.
"""

# %%
# The survey and its ledger
# -------------------------
#
# The records are invented. Weights correct for who was asked: a person in a village stands for up to
# four others. The law of the survey names the total, epsilon 2, before anything is published.

# sphinx_gallery_thumbnail_path = "images/thumbnails/statistics_office.png"

import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpselect import (
    DPHistogramDensity,
    DPHuberRegressor,
    PrivacyLedger,
    PrivacyLoss,
    TermsDisplay,
    coef_interval,
    privacy_report,
)
from dpselect.preprocessing import tabular_pipeline

rng = np.random.default_rng(0)
n = 30_000
survey = pd.DataFrame(
    {
        "age": rng.integers(18, 81, size=n),
        "school": rng.choice(["basic", "middle", "high"], p=[0.3, 0.4, 0.3], size=n),
        "hours": rng.normal(34, 10, size=n).clip(0, 60).round(),
    }
)
gain = survey["school"].map({"basic": 0, "middle": 400, "high": 1200})
income = 200 + 55 * survey["hours"] + 8 * (survey["age"] - 18) + gain + rng.normal(0, 500, size=n)
weight = rng.choice([1.0, 2.0, 4.0], p=[0.5, 0.3, 0.2], size=n)

folder = tempfile.TemporaryDirectory()
ledger = PrivacyLedger(os.path.join(folder.name, "survey.ledger"), epsilon=2.0)

# %%
# Spring: a table
# ---------------
#
# Ages in bins of nine years. A cell is off by at most :math:`6/\varepsilon` persons in 95 % of all
# cases, however many people are in it.

with PrivacyLedger(ledger.path, label="spring", user="population"):
    ages = DPHistogramDensity(0.5, bin_width=9, bounds=(18, 81)).fit(survey[["age"]])
print((n * ages.to_frame()["share"]).round().astype(int).tolist())

# %%
# Summer: what explains incomes?
# ------------------------------
#
# The model takes weights up to a bound that is known of the design, here 4. Half of the persons train
# it, by their position in the file, and the other half gives the intervals, with epsilon .7 each. A
# person is in one half, so .7 is what a statement may say; a ledger cannot know that, and adds both.

schema = {"age": (18, 80), "school": ["basic", "middle", "high"], "hours": (0, 60)}
model = tabular_pipeline(
    schema,
    DPHuberRegressor(epsilon=0.7, target_range=(0, 6000), max_sample_weight=4.0),
    expansion="linear",
)
half = n // 2
with PrivacyLedger(ledger.path, label="summer", user="incomes"):
    model.fit(survey[:half], income[:half], model__sample_weight=weight[:half])
    intervals = coef_interval(
        model,
        survey[half:],
        income[half:],
        sample_weight=weight[half:],
        epsilon=0.7,
        n_samples=half,
    )

# %%
# The picture has the effect of each column, in the units of the survey, with intervals of 95 %.

TermsDisplay.from_estimator(model, intervals=intervals).plot()
plt.show()

# %%
# The data were invented with 400 and 1,200 for the two schools beside the basic one. The differences of
# the released effects:

effects = TermsDisplay.from_estimator(model, intervals=intervals).to_frame()
school = effects[effects["value"].isin(["basic", "middle", "high"])].set_index("value")["effect"]
print((school - school["basic"]).round())

# %%
# The year's report
# -----------------
#
# It names every release, what each has cost, and what all of them together can tell about a person. A
# year later the same people may be asked again, so the next ledger begins with what is left of a total
# for several years: :doc:`/epsilon`.

report = privacy_report(ledger, about="Survey of incomes, 2026")
print("\n".join(report.to_markdown().splitlines()[:30]))

# %%
# How many more tables like that of spring can be paid for?

print(
    ledger.carries(PrivacyLoss(0.5)), "of epsilon 0.5 and", ledger.carries(PrivacyLoss(0.05)), "of 0.05"
)
folder.cleanup()

# %%
# What to read next: :doc:`/ledger` for rules on how losses add up, and :doc:`/mechanisms/coefficients`
# for what the intervals are about.
