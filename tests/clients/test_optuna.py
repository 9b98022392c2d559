"""optuna: a study is a loop of fits, which a ledger counts and ends."""

import pytest
from sklearn.base import clone

from dpselect import BudgetExceededError, PrivacyLedger

optuna = pytest.importorskip("optuna")


def test_optuna(numbers, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.json", epsilon=1.0)

    def objective(trial):
        model = clone(numbers.model)[-1].set_params(epsilon=0.3, ledger=ledger)
        model.set_params(alpha=trial.suggest_float("alpha", 0.01, 1.0, log=True))
        return model.fit(numbers.X, numbers.y).score(numbers.new, numbers.labels)

    study = optuna.create_study(direction="maximize")
    with pytest.raises(BudgetExceededError):
        study.optimize(objective, n_trials=10)
    finished = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    assert len(finished) == 3 and ledger.spent()[0] == pytest.approx(0.9)
