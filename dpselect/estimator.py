"""What private estimators share: the statement of the loss, and how it is shown."""

from .config import warn_caller
from .exceptions import SeededNoiseWarning
from .ledger import CarriesLedgerMixin
from .noise import InnerStream, is_seeded
from .privacy import PrivacyLoss


class PrivacyHTMLMixin(CarriesLedgerMixin):
    """What private estimators share; comes before BaseEstimator.

    It shows `privacy_` in notebooks, beneath scikit-learn's diagram, and pickles carry the ledger
    that is open.
    """

    privacy_: PrivacyLoss

    @property
    def _repr_html_(self):
        # an AttributeError where scikit-learn's `display` is "text"
        diagram = super()._repr_html_
        return lambda: diagram() + self._privacy_html()

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._privacy_html()
        return bundle

    def _privacy_html(self):
        loss = vars(self).get("privacy_")
        return "" if loss is None else loss._repr_html_()


def release_loss(estimator, what, delta=0.0):
    """Return the loss of one release by `estimator`, and warn if its noise was seeded.

    Parameters
    ----------
    estimator : estimator
        With parameters `epsilon` and `random_state`.
    what : str
        What is released, in words.
    delta : float, default=0.0
        Probability with which the loss may exceed epsilon.

    Returns
    -------
    PrivacyLoss
    """
    warn_if_seeded(estimator)
    noisy = estimator.epsilon != float("inf")
    return PrivacyLoss(
        float(estimator.epsilon),
        delta=float(delta) if noisy else 0.0,
        label=f"{type(estimator).__name__}: {what}",
        seeded=noisy and is_seeded(estimator.random_state),
    )


def warn_if_seeded(estimator):
    """Warn if what `estimator` is about to release has noise that can be drawn again."""
    state = estimator.random_state
    # a search's inner fits are never released
    private = getattr(estimator, "epsilon", None) != float("inf")
    if is_seeded(state) and not isinstance(state, InnerStream) and private:
        warn_caller(
            f"{type(estimator).__name__} was given a random_state of type {type(state).__name__}: "
            "whoever knows the seed can remove the noise, so use random_state=None for anything "
            "that leaves your hands.",
            SeededNoiseWarning,
        )
