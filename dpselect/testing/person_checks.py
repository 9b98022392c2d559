"""Check rows of persons: a person with many rows counts once, or is refused."""

import math

import numpy as np

from ..accounting.privacy_loss import Adjacency
from .attempts import attempt
from .tally import require

# tolerated rounding error of a release, relative to the noise or to the numbers
ROUNDED = 1e-3


def takes_persons(case):
    """Return whether `fit` takes groups."""
    data = case.data()
    return attempt(lambda: case.model(0).fit(*data, groups=np.arange(len(data[0])))).error is None


def check_groups(case):
    """Check that a person's repeated rows count once, or that groups are refused without a proof."""
    data = case.data()
    n = len(data[0])
    ids = np.arange(n)
    taken = attempt(lambda: case.model(0).fit(*data, groups=ids))
    if taken.error is not None:
        require(
            isinstance(taken.error, (TypeError, ValueError)) and "groups" in str(taken.error),
            "A fit with groups must be refused by an error that names them, or take them.",
        )
        return
    require(
        taken.value.privacy_.adjacency == Adjacency.REPLACE_PERSON,
        f"fit takes groups, and privacy_ is not about {str(Adjacency.REPLACE_PERSON)!r}; let "
        "takes_groups be False, or state it.",
    )
    times = np.where(ids == n // 2, 5, 1)
    many, whose = [np.repeat(part, times, axis=0) for part in data], np.repeat(ids, times)
    for epsilon in (math.inf, 1.0):
        one, other = (
            case.numbers(case.model(0, epsilon=epsilon).fit(*records, groups=persons))
            for records, persons in ((data, ids), (many, whose))
        )
        spread = case.spread(data, epsilon=epsilon) if epsilon < math.inf else 0.0
        require(
            (np.abs(one - other) <= ROUNDED * (spread + np.abs(one)) + 1e-9).all(),
            "A person with one row five times counts for more than who has it once; weigh rows by "
            "records.persons.weight, and take the noise and all means of as many persons as there are.",
        )
