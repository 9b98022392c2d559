"""The parameters of private ridge regression, checked before any data is touched."""

from ...noise import check_random_state
from ...validation import SMALLEST_BOUND, check_choice, check_epsilon, check_flag, check_number


def check_parameters(model):
    """Refuse parameters under which a fit would not keep its guarantee.

    Parameters
    ----------
    model : DPRidge

    Raises
    ------
    ValueError, TypeError
    """
    check_epsilon(model.epsilon)
    check_number(
        "alpha", model.alpha,
        why="without regularisation one record can move the model without limit",
        instead="write a number greater than 0, such as 0.01",
    )
    check_choice(
        "perturbation", model.perturbation, ("covariance", "objective", "output"),
        why="only these have a proof",
    )
    check_choice("norm", model.norm, ("l1", "l2"), why="only these norms are known here")
    check_number(
        "delta", model.delta, low_included=True, high=1.0,
        why="it is a probability", instead="write 0.0, or a number such as 1e-6",
    )
    if model.delta > 0 and (model.norm == "l1" or model.perturbation != "covariance"):
        raise ValueError(
            f"delta={model.delta!r} is not allowed with norm={model.norm!r} and "
            f"perturbation={model.perturbation!r}, because their noise gives pure privacy and "
            'would not use it; write delta=0.0, or norm="l2" with perturbation="covariance".'
        )
    for name, what in (("data_norm", "norm that a row"), ("target_bound", "size that a target")):
        check_number(
            name, getattr(model, name), low=SMALLEST_BOUND, low_included=True,
            high=1 / SMALLEST_BOUND, high_included=True,
            why=f"the noise is proportional to the largest {what} may have, and has to be a "
            "number of float64",
            instead="write a bound from knowledge of the field, such as 1.0",
        )
    check_flag(
        "fit_intercept", model.fit_intercept, why="the noise depends on the number of columns"
    )
    if model.coef_bound is not None:
        check_number(
            "coef_bound", model.coef_bound, low=SMALLEST_BOUND, low_included=True,
            why="it is the radius of the ball in which the coefficients are sought",
            instead="write a number greater than 0, or None for the public bound",
        )
    check_random_state(model.random_state)
