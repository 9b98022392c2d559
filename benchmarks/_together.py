"""Many private models of the same records, trained in shared passes over them and never released."""

from dpselect.linear_model.classifier import DPLinearClassifier
from dpselect.linear_model.design import design_and_targets
from dpselect.linear_model.sweep import by_problem, solve


def fitted_together(trials, X, y):
    """Return the trained models of trials of one class, which state no loss.

    Parameters
    ----------
    trials : list of Trial
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)

    Returns
    -------
    list of estimator
    """
    if not isinstance(trials[0].model, DPLinearClassifier):
        return [trial.fitted(X, y) for trial in trials]
    models = [None] * len(trials)
    for problem, places in by_problem(trials):
        some = [trials[i] for i in places]
        records = some[0].records(X, y)
        calibrations = [trial.calibration(records.shape) for trial in some]
        noises = [trial.noise(records.shape) for trial in some]
        (coefficients,) = solve([calibrations], noises, *design_and_targets(problem, records))
        for i, trial, w in zip(places, some, coefficients):
            models[i] = trial.published(**problem.attributes(w), **records.public)
    return models
