import matplotlib
import numpy as np
import pytest

from dpselect import PrivacyLedger, PrivacyLedgerDisplay, PrivacyLoss

matplotlib.use("Agg")


@pytest.fixture
def ledger(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger", epsilon=2.0)
    ledger.spend(0.5)
    ledger.reserve(1.0).commit(PrivacyLoss(0.25, kind="ex-post"))
    ledger.reserve(0.25)
    return ledger


def test_a_ledger_is_drawn(ledger):
    import matplotlib.pyplot as plt

    display = PrivacyLedgerDisplay.from_ledger(ledger)
    assert display.plot() is display
    assert display.line_.get_ydata().tolist() == [0.5, 0.75, 1.0]
    assert display.uncommitted.tolist() == [False, False, True]
    assert (np.diff(display.times) >= np.timedelta64(0)).all()
    heights = [line.get_ydata()[0] for line in display.ax_.lines]
    assert 2.0 in heights and display.ax_.get_ylim()[1] > 2.0
    plt.close(display.figure_)
    figure, ax = plt.subplots()
    again = display.plot(ax=ax)
    assert again.ax_ is ax and again.figure_ is figure
    plt.close(figure)


def test_an_empty_ledger_is_drawn(tmp_path):
    import matplotlib.pyplot as plt

    display = PrivacyLedgerDisplay.from_ledger(PrivacyLedger(tmp_path / "new", epsilon=1.0)).plot()
    assert len(display.line_.get_ydata()) == 0
    plt.close(display.figure_)
