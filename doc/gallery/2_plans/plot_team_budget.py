"""
One budget for two analysts
===========================

Ana and Ben work on the same patients, in two programs. What their releases may tell about a
patient in all is decided once and kept in a file, a ``PrivacyLedger``. Everything that they fit
is paid from it, what does not fit in is refused before a record is read, and what turns out
cheaper than feared is refunded.
"""

# %%
# The data holder makes a ledger
# ------------------------------
#
# Five thousand synthetic patients: age and blood pressure, and whether they fell ill.

# sphinx_gallery_thumbnail_path = "images/thumbnails/team_budget.png"

import json
import os
import tempfile
import warnings
from datetime import UTC, datetime

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstSearchCV,
    BudgetExceededError,
    DPHistogramDensity,
    DPLogisticRegression,
    PrivacyLeakWarning,
    PrivacyLedger,
    PrivacyLedgerDisplay,
    StabilityGridSearchCV,
)
from dpselect.preprocessing import BoundedScaler

rng = np.random.default_rng(0)
patients = np.column_stack([rng.uniform(20, 90, size=5000), rng.normal(130, 20, size=5000)])
risk = 0.05 * (patients[:, 0] - 60) + 0.04 * (patients[:, 1] - 130)
ill = (rng.random(5000) < 1 / (1 + np.exp(-risk))).astype(int)

folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "patients.ledger")
PrivacyLedger(path, epsilon=3.0)
scaler = BoundedScaler([(20, 90), (60, 250)])

# %%
# Ana publishes a table of ages, and a model
# ------------------------------------------
#
# Her program knows the path and nothing else. A search is paid once, however
# many models it tries.

ledger = PrivacyLedger(path)
with ledger:
    ages = DPHistogramDensity(epsilon=0.25, bin_width=10, bounds=(20, 90)).fit(patients[:, :1])
    model = make_pipeline(scaler, DPLogisticRegression(classes=[0, 1]))
    search = StabilityGridSearchCV(
        model, {"dplogisticregression__data_norm": [0.5, 1.0]}, epsilon=0.75
    ).fit(patients, ill)
print(ledger)

# %%
# Ben is refused
# --------------
#
# Ben tries a plain ``GridSearchCV`` around a private model, and overlooks the warning. That is 31
# releases of epsilon 0.5 each; the ledger pays for as many as it can, and stops the rest, in
# joblib's processes too. (We let him have a copy of the ledger, so that the story can go on: his
# mistake would have used up the budget of both.)

copy = PrivacyLedger.from_json(ledger.to_json(), os.path.join(folder.name, "copy.ledger"))
private = DPLogisticRegression(epsilon=0.5, classes=[0, 1], ledger=copy)
careless = GridSearchCV(
    make_pipeline(scaler, private),
    {"dplogisticregression__alpha": np.geomspace(1e-3, 1, 6)},
    cv=KFold(5),
    error_score="raise",
)
warnings.simplefilter("ignore", PrivacyLeakWarning)
try:
    careless.fit(patients, ill)
except BudgetExceededError:
    n_fits = len(copy.history()) - len(ledger.history())
    print(f"refused after {n_fits} fits; left: {copy.remaining()}")

# %%
# A refund
# --------
#
# Ben now asks for the smallest epsilon that gives a target accuracy on patients that are set
# aside. What that will be is not known before, so the largest loss that can come out is
# reserved, and while the search runs nobody else can spend it. In the end what came out is
# counted (*ex-post*), and the rest is free again.

accurate = AccuracyFirstSearchCV(
    make_pipeline(scaler, DPLogisticRegression(alpha=0.01, classes=[0, 1], perturbation="output")),
    {"dplogisticregression__epsilon": np.geomspace(0.02, 1.0, 30)},
    target=0.24,
    criterion="brier",
    method="reduced_above_threshold",
    on_failure="last",
)
with ledger:
    accurate.fit(patients, ill)
last = ledger.history()[-1]
print(f"reserved {last.reserved_epsilon:.3f}, counted {last.epsilon:.3f}")
print(accurate.privacy_)

# %%
# The account
# -----------
#
# A table that was made by hand is entered by hand, *before* it is made. And a program that dies
# in the middle leaves its reservation, which counts in full: its release may have come out.

ledger.spend(0.3, label="table of illnesses by decade, by hand")
ledger.reserve(0.4, label="a program that died")
print(ledger)

# %%
# On the command line ``dpselect ledger show patients.ledger`` prints this, too. For the
# picture we spread the five entries, all of the last seconds, over a spring.

account = json.loads(ledger.to_json())
days = ((3, 2), (3, 16), (4, 10), (5, 4), (5, 21))
for entry, (month, day) in zip(account["entries"], days):
    entry["reserved_at"] = datetime(2026, month, day, tzinfo=UTC).isoformat()
spread = PrivacyLedger.from_json(json.dumps(account), os.path.join(folder.name, "spread.ledger"))

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
display = PrivacyLedgerDisplay.from_ledger(spread).plot(ax=ax)
names = ("Ana: ages", "Ana: search", "Ben: target accuracy", "Ben: table", "died")
for time, total, name in zip(display.times, np.cumsum(display.epsilons), names):
    ax.annotate(name, (time, total), xytext=(6, -14), textcoords="offset points", fontsize="small")
ax.set_xlim(np.datetime64("2026-02-25"), np.datetime64("2026-06-10"))
plt.show()

folder.cleanup()

# %%
# Whatever Ana and Ben do next, what all their releases tell about a patient stays below the
# dashed line: :doc:`/mechanisms/ledger` has the proof, and :doc:`/ledger` what it does not cover.
