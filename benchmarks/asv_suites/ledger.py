"""A budget on disk."""

import tempfile
from pathlib import Path

from dpselect import DPHistogramDensity, PrivacyLedger, PrivacyLoss

from ._records import Suite, uniform

# so large that no run of a benchmark spends it
BUDGET = 1e9
EPSILON = 1e-3


class Spending(Suite):
    """A ledger that has some entries; each call adds one more."""

    params = [0, 100]
    param_names = ["entries"]

    def setup(self, entries):
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = PrivacyLedger(Path(self.folder.name, "records.ledger"), epsilon=BUDGET)
        for _ in range(entries):
            self.ledger.spend(EPSILON)
        self.X = uniform(1000, 1)

    def teardown(self, entries):
        self.folder.cleanup()

    def time_spend(self, entries):
        self.ledger.spend(EPSILON)

    def time_reserve_and_commit(self, entries):
        self.ledger.reserve(EPSILON).commit(PrivacyLoss(EPSILON))

    def time_remaining(self, entries):
        self.ledger.remaining()

    def time_fit_that_spends(self, entries):
        DPHistogramDensity(EPSILON, ledger=self.ledger, bounds=(0, 1)).fit(self.X)
