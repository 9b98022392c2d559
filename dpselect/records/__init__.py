"""Records as estimators take them: checked, weighted, by person, held out, seen in training."""

from .public_shape import PublicShape
from .records import Records, numeric_rows, score_on, take_part

__all__ = ["PublicShape", "Records", "numeric_rows", "score_on", "take_part"]
