"""Scale columns of numbers by their bounds."""

import numpy as np

TRANSFORMS = {None: np.positive, "log1p": np.log1p, "arcsinh": np.arcsinh}
INVERSES = {None: np.positive, "log1p": np.expm1, "arcsinh": np.sinh}


class NumberScale:
    """The scaling of several columns of numbers to [0, 1], all at once."""

    def __init__(self, columns):
        self.columns = columns
        ends = [(c.low, c.high, *map(TRANSFORMS[c.transform], (c.low, c.high))) for c in columns]
        self.low, self.high, self.start, end = np.array(ends, dtype=np.float64).T[:, :, np.newaxis]
        self.span = end - self.start

    def check(self, x):
        """Write NaN for gaps into numbers of shape (p, b), in place; refuse what no record can have."""
        for j, column in enumerate(self.columns):
            if column.dates is not None:
                x[j] = column.parsed(x[j])
            if column.missing_values:
                x[j] = column.without_codes(x[j])
        for j in np.flatnonzero(~np.isfinite(x).all(axis=1)):
            self.columns[j].numbers(x[j])

    def apply(self, x):
        """Scale numbers of shape (p, b) in place."""
        np.clip(x, self.low, self.high, out=x)
        for column, clipped in zip(self.columns, x):
            if column.transform is not None:
                TRANSFORMS[column.transform](clipped, out=clipped)
        x -= self.start
        x /= self.span
        for column, scaled in zip(self.columns, x):
            if column.transform is not None:
                # clip again: numpy functions of arrays and of scalars may differ in the last bits
                np.clip(scaled, 0.0, 1.0, out=scaled)
