"""Weights of rows: of classes and records, with a public bound, and of a person's rows."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..rows import block_map
from ..utils.validation import size


@dataclass(frozen=True)
class Weights:
    """The public part of the weights of records.

    Attributes
    ----------
    of_classes : tuple or None
        Pairs of a label and its weight; all other labels have weight 1.
    of_samples : float or None
        To which weights of records are clipped; None if these have none.
    largest : float
        W, the largest weight that a record may have.
    """

    of_classes: tuple | None
    of_samples: float | None
    largest: float

    @classmethod
    def of(cls, class_weight, max_sample_weight, classes):
        """Return the weights of a model with these parameters, or None if all records have weight 1."""
        if class_weight is None and max_sample_weight is None:
            return None
        max_weight = None if max_sample_weight is None else float(max_sample_weight)
        largest = 1.0 if max_weight is None else max_weight
        if class_weight is not None:
            class_weight = {label: float(weight) for label, weight in class_weight.items()}
            # labels that are learned later may be missing in class_weight, and then have weight 1
            largest *= max(
                [1.0, *class_weight.values()]
                if classes is None
                else [class_weight.get(label, 1.0) for label in classes]
            )
            class_weight = tuple(class_weight.items())
        return cls(class_weight, max_weight, largest)

    def of_records(self, records):
        """Return the weight of each record, shape (n, 1), between 0 and `largest`."""
        max_weight, of_classes = self.of_samples, None
        if self.of_classes is not None:
            given, classes = dict(self.of_classes), records.classes
            of_classes = np.array([[given.get(label, 1.0)] for label in classes.tolist()])

        def weights(y, *given):
            weight = np.ones((len(y), 1))
            if max_weight is not None:  # without sample_weight a record has weight 1, clipped as all are
                weight = np.clip(given[0][:, None] if given else weight, 0.0, max_weight)
            if of_classes is not None:
                weight *= (y[:, None] == classes) @ of_classes
            return weight

        given = () if records.weight is None else (records.weight,)
        return block_map(weights, records.y, *given, row_elements=4)


def weights_of(weights, records):
    """Return the weight of each row, shape (n, 1), or None if all are equal.

    Parameters
    ----------
    weights : Weights or None
    records : Records
    """
    own = None if weights is None else weights.of_records(records)
    if records.persons is None:
        return own
    person_weights = block_map(lambda weight: weight[:, None], records.persons.weight)
    return person_weights if own is None else block_map(np.multiply, own, person_weights)


def check_class_weight(value, classes):
    """Refuse weights of classes that are not public, or of labels that are not in `classes`."""
    if value is None:
        return
    instead = "write a dict of labels and numbers, made from public shares, such as {0: 1.0, 1: 5.0}"
    if isinstance(value, str) and value == "balanced":
        raise ValueError(
            'class_weight="balanced" counts the labels of the records, which the privacy loss does not '
            f"cover; {instead}."
        )
    if not isinstance(value, Mapping):
        raise TypeError(
            f"class_weight must be a dict or None, not a {type(value).__name__}, because the noise is "
            f"proportional to the largest weight; {instead}."
        )
    check = size(why="the noise is proportional to the largest weight", instead=instead)
    for weight in value.values():
        check("a value of class_weight", weight)
    if classes is not None and not set(value) <= set(np.asarray(classes).tolist()):
        raise ValueError(
            "class_weight names a label that is not in classes, so it would weigh nothing; write one "
            "weight for each label of classes."
        )
