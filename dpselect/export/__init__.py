"""Models that predict where there is no dpselect: in scikit-learn alone."""

from ..preprocessing.plain_pipelines import to_sklearn

__all__ = ["to_sklearn"]
