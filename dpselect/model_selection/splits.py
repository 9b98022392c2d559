"""Splits of the records that do not depend on the records."""

import numbers
from collections.abc import Sequence
from copy import copy
from functools import cached_property

import numpy as np
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.utils import check_random_state

from ..exceptions import CertificateError
from ..rows.cutting import all_indices, packed, unpacked
from ..utils.validation import unquoted

# splitters whose indices follow from the number of records and a random state
BLIND = (KFold, RepeatedKFold, ShuffleSplit, LeaveOneOut, LeavePOut, TimeSeriesSplit)
STRATIFIED = (
    StratifiedKFold,
    StratifiedGroupKFold,
    StratifiedShuffleSplit,
    RepeatedStratifiedKFold,
)


def check_splitter(cv, public_splits=False):
    """Refuse a splitter that may look at the records, unless `public_splits` says that it does not."""
    if isinstance(cv, STRATIFIED):
        raise ValueError(
            f"cv={type(cv).__name__}() looks at the labels, so one changed label moves other records "
            "between the parts and no certificate bounds that; write cv=5 (shuffled folds) or "
            "cv=KFold(5, shuffle=True)."
        )
    if cv is None or type(cv) in BLIND or public_splits:
        return
    if isinstance(cv, numbers.Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv={cv} leaves no part to validate on; write 2 or more folds.")
        return
    what = type(cv).__name__
    raise ValueError(
        f"cv of type {what} may depend on the records, and no certificate bounds what one record "
        "does to the splits then; write cv=5 or cv=KFold(5, shuffle=True), or declare "
        "public_splits=True if its indices and groups are public knowledge."
    )


def make_splits(cv, n_samples, stream, persons=False):
    """Return all splits of a `cv` that was checked, a sequence of pairs of index arrays.

    None and integers mean shuffled folds: files that are sorted by class are common.
    """
    if cv is None or isinstance(cv, numbers.Integral):
        cv = KFold(5 if cv is None else int(cv), shuffle=True, random_state=stream.integer())
    if type(cv) in BLIND and getattr(cv, "random_state", 0) is None:
        # numpy's global generator, which it would use, is left alone
        cv = copy(cv)
        cv.random_state = stream.integer()
    # (whoever sets attributes of a KFold evades its checks, and is refused where splits are made)
    if (
        type(cv) is KFold
        and 2 <= cv.get_n_splits() <= n_samples
        and (
            cv.random_state is None
            or isinstance(cv.random_state, numbers.Integral)
            and 0 <= cv.random_state < 2**32
        )
    ):
        return Folds(cv, n_samples)
    if hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
        # the splitter sees the number of records and nothing else of them; each person is a group
        groups = (None, np.arange(n_samples)) if persons and type(cv) not in BLIND else ()
        splits = cv.split(np.broadcast_to(0.0, (n_samples, 1)), *groups)
    else:
        splits = cv
    # one after the other, since a splitter's own arrays are larger
    splits = [_pair(split, n_samples) for split in (splits if np.iterable(splits) else [None])]
    if persons and any(len(np.unique(part)) < len(part) for split in splits for part in split):
        raise ValueError(
            "cv names a person twice in one part, and a person counts once, whatever the rows are; "
            "write splits that do not repeat."
        )
    if any(len(split) != 2 for split in splits):
        raise ValueError("cv must give pairs (train, test) of index arrays; write a list of pairs.")
    if not splits or any(0 in split.sizes for split in splits):
        raise ValueError(
            "cv gives no splits, or an empty part; give splits that leave records on both sides, as "
            "a list if they come from an iterator, which can be used only once."
        )
    return splits


def disjoint_parts(splits):
    """Return the first split, or refuse one in which a record counts more than once.

    Where one part makes models and the other tests or chooses, the larger of their two losses
    counts, and noise is made for records that are each listed once.
    """
    train, test = splits[0]
    if np.intersect1d(train, test).size:
        raise CertificateError(
            "The first split of cv validates on records that it trains on, so the losses of its two "
            "parts would add up; give a split whose parts are disjoint."
        )
    for name, part in (("trains on", train), ("validates on", test)):
        if len(np.unique(part)) < len(part):
            raise CertificateError(
                f"The first split of cv {name} a record more than once, so this record counts more "
                "than the noise hides; list every record once."
            )
    return train, test


class Folds(Sequence):
    """Splits of a KFold with a seed, made on first access: some strategies need none.

    They are those of its `split`, whose arrays would take more memory than all that follows.
    """

    def __init__(self, cv, n_samples):
        self.cv, self.n_samples = copy(cv), n_samples

    def __len__(self):
        return self.cv.get_n_splits()

    def __getitem__(self, j):
        return self._made[j]

    @cached_property
    def _made(self):
        order = all_indices(self.n_samples)
        if self.cv.shuffle:
            check_random_state(self.cv.random_state).shuffle(order)
        return [self._without(part) for part in np.array_split(order, len(self))]

    def _without(self, part):
        mask = np.zeros(self.n_samples, dtype=bool)
        mask[part] = True
        return Split((~mask, mask), self.n_samples)


class Halves(Sequence):
    """Split of dummy records into two halves, made on access."""

    def __init__(self, n_samples):
        self.n_samples = n_samples

    def __len__(self):
        return 1

    def __getitem__(self, j):
        return [np.split(np.arange(self.n_samples), 2)][j]


class Split:
    """A pair of index arrays, each kept as bits if it is ascending, as those of folds are."""

    def __init__(self, parts, n_samples):
        self.parts, self.sizes, self.n_samples = [], [], n_samples
        for part in parts:
            part = _indices(part, n_samples)
            self.parts.append(packed(part, n_samples))
            self.sizes.append(len(part))

    def __len__(self):
        return len(self.parts)

    def __iter__(self):
        return (self[i] for i in range(len(self.parts)))

    def __getitem__(self, i):
        return unpacked(self.parts[i], self.n_samples)


def _pair(split, n_samples):
    if not np.iterable(split):
        raise ValueError("cv must give pairs (train, test) of index arrays; write a list of pairs.")
    return Split(split, n_samples)


def _indices(part, n_samples):
    part = unquoted(np.asarray, part, what="cv")
    if part.size == 0:
        return np.empty(0, dtype=int)
    if part.ndim != 1 or part.dtype.kind not in "iub":
        raise ValueError(
            "cv must give one-dimensional arrays of record numbers, or masks; write a list of pairs "
            "of such arrays."
        )
    if (
        len(part) != n_samples
        if part.dtype.kind == "b"
        else not (-n_samples <= part.min() and part.max() < n_samples)
    ):
        raise ValueError(
            f"cv names records beyond the n_samples={n_samples} that there are; write numbers "
            "below that, or masks of that length."
        )
    # masks and negative indices become indices
    return all_indices(n_samples)[part]
