"""The rows as a linear model sees them: clipped to their norms, the constant appended."""

import math
from copy import copy
from functools import partial

import numpy as np
from scipy import sparse

from ..rows import (
    CodedRows,
    block_map,
    block_sum,
    canonical,
    hold,
    in_one_place,
    is_lazy,
    on_each_row,
    over_blocks,
    row_sums,
    rows_in_block,
    sample,
    transposed,
)
from .weights import weights_of

TINY = 2.0**-300
# up to so many entries, a clipped copy is cheaper than factors and a constant in each product
FEW_ENTRIES = 1 << 15


class Rows:
    """A block of b rows a_i = (f_i x_i, s), dense or a CSR array, neither copied nor stored.

    `factor`, f of shape (b, 1), scales long rows down; the constant s is None without an intercept.
    `weight`, of shape (b, 1), is how often a row counts in sums of losses, or None for once.
    """

    def __init__(self, X, factor, constant, weight=None):
        smallest = factor.min(initial=1.0)
        if smallest < TINY:
            # products with such a row would overflow before they are multiplied by the factor
            X, factor = on_each_row(np.multiply, _dense(X), factor), np.ones_like(factor)
        self.X, self.factor, self.constant, self.weight = X, factor, constant, weight
        # often no row needs clipping, and products can skip the factors
        self.clipped, self.coded = smallest < 1.0, isinstance(X, CodedRows)
        self.dense = not (self.coded or sparse.issparse(X))

    def dot(self, W):
        """Return the products A @ W, shape (b, k), for W of shape (d, k)."""
        product = self.X @ (W if self.constant is None else W[:-1])
        if self.clipped:
            product *= self.factor
        if self.constant is not None:
            product += self.constant * W[-1]
        return product

    def adjoint_dot(self, G):
        """Return A.T @ G, shape (d, k), for G of shape (b, k)."""
        G_head = self.factor * G if self.clipped else G
        if self.coded:
            head = self.X.adjoint_dot(G_head)
        else:
            # for dense rows the product is faster in this order
            head = (G_head.T @ self.X).T if self.dense else transposed(self.X) @ G_head
        if self.constant is None:
            return head
        product = np.empty((len(head) + 1, G.shape[1]))
        product[:-1], product[-1] = head, self.constant * G.sum(axis=0)
        return product

    def matrix(self, weights):
        """Return diag(weights) @ A of dense rows, shape (b, d), for weights of shape (b, 1)."""
        A = np.empty((len(self.X), self.X.shape[1] + (self.constant is not None)))
        np.multiply(self.X, self.factor * weights, out=A[:, : self.X.shape[1]])
        if self.constant is not None:
            A[:, -1:] = self.constant * weights
        return A

    def clipped_copy(self):
        """Return a copy of dense rows with clip factors and constant applied."""
        ones = np.ones((len(self.X), 1))
        return Rows(self.matrix(ones), ones, None, self.weight)

    def take(self, chosen):
        """Return the chosen rows."""
        weight = None if self.weight is None else self.weight[chosen]
        return Rows(self.X[chosen], self.factor[chosen], self.constant, weight)

    def weighted(self, values):
        """Return values or derivatives of unweighted losses, multiplied by the weights of the rows."""
        return values if self.weight is None else self.weight * values

    def moments(self):
        """Return the sums of the weights, and of weighted rows and their squares, of shape (d, 1)."""
        ones = np.ones((self.X.shape[0], 1))
        squares = on_each_row(_squares, _dense(self.X), self.factor)
        squares = Rows(squares, ones, None if self.constant is None else self.constant**2)
        weights = self.weighted(ones)
        return weights.sum(), self.adjoint_dot(weights), squares.adjoint_dot(weights)

    def gram(self, weights):
        """Return A.T @ diag(weights) @ A of dense rows, shape (d, d)."""
        A = self.matrix(np.sqrt(weights)[:, None])
        return A.T @ A


class Design:
    """All n rows of a data set as a linear model sees them.

    Rows are scaled down to an l2 norm of `data_norm` and an l1 norm of `data_norm_l1`; the public
    `constant` s is appended to every row for the intercept, unless it is None. `n_jobs` threads share
    the passes. `n_columns`, d, counts the constant, and `radius` bounds the l2 norm of the rows with it.
    `weight`, of shape (n, 1), is cut as X is; None gives all rows the same weight. Means are over
    `n_samples`, rows or persons.
    """

    weight = None

    def __init__(self, X, data_norm, constant, n_jobs=None, data_norm_l1=math.inf):
        norms = {"l2": data_norm, "l1": data_norm_l1}
        self.bounds = {norm: bound for norm, bound in norms.items() if bound < math.inf}
        self.clip = partial(_clip_factor, bounds=self.bounds)
        X = canonical(X)
        # sources that are read in each pass need not yield identical rows, so clip them in each pass;
        # others are clipped in the first sum, because to read them may take long
        self.keeps_factor = is_lazy(X) and X.in_memory
        factor = None if is_lazy(X) else block_map(self.clip, X, n_jobs=n_jobs, beside=1)
        # the l1 norm bounds the l2 norm
        radius = math.hypot(min(data_norm, data_norm_l1), constant or 0.0)
        self._set(X, factor, constant, radius, n_jobs)

    def _set(self, X, factor, constant, radius, n_jobs):
        self.X, self.factor, self.constant = X, factor, constant
        self.radius, self.n_jobs = radius, n_jobs
        self.n_rows = self.n_samples = X.shape[0]
        self.sparse = X.sparse if is_lazy(X) else sparse.issparse(X)
        self.n_columns = X.shape[1] + (constant is not None)

    def sample(self, n_rows, *aligned):
        """Return a design of about `n_rows` rows spread over the table, with aligned arrays."""
        X, *aligned = sample(n_rows, self.X, *self._weights(), *aligned)
        smaller = copy(self)
        factor = None if self.factor is None else aligned.pop(0)
        smaller.weight = None if self.weight is None else aligned.pop(0)
        smaller._set(X, factor, self.constant, self.radius, self.n_jobs)
        smaller.n_samples = self.n_samples / self.n_rows * smaller.n_rows
        return smaller, *aligned

    def on_few_rows(self, function, *aligned):
        """Return ``function(design, *aligned)`` of few rows, computed where they are."""
        if not is_lazy(self.X):
            return function(self, *aligned)
        plain = copy(self)
        clipped, weighted = self.factor is not None, self.weight is not None

        def on_arrays(X, *arrays):
            plain.X, arrays = X, list(arrays)
            plain.factor = arrays.pop(0) if clipped else None
            plain.weight = arrays.pop(0) if weighted else None
            return function(plain, *arrays)

        return in_one_place(on_arrays, self.X, *self._weights(), *aligned)

    def clipped_once(self, targets, y, n_columns):
        """Return a design whose rows are clipped once where they are, together with ``targets(y)``.

        None where each pass reads the rows, and may read others.
        """
        if not is_lazy(self.X):
            return None
        clip, weights = self.clip, () if self.weight is None else (self.weight,)

        def on_block(X, y, *weights):
            return clip(X), targets(y), *weights

        found = hold(on_block, self.X, y, *weights, tails=((1,), (n_columns,), *((1,) for _ in weights)))
        if found is None:
            return None
        clipped = copy(self)
        clipped.X, clipped.factor, of_rows, *weights = found
        clipped.weight = weights[0] if weights else None
        return clipped, of_rows

    def sum(self, function, *aligned, columns, dense=False):
        """Sum ``function(rows, *aligned_blocks)`` over blocks of :class:`Rows`, in one pass.

        Sparse rows stay sparse, unless they are to be `dense`.
        """
        if self.factor is None and self.keeps_factor:
            self.factor = np.full((self.n_rows, 1), np.nan)
        return block_sum(
            self._wrap(function),
            self.X,
            *self._weights(),
            *aligned,
            n_jobs=self.n_jobs,
            row_elements=max(self.X.shape[1], columns),
            beside=None if dense else columns,
        )

    def sums(self, *aligned, columns):
        """Return :meth:`sum` of aligned arrays, for many passes of at most so many `columns`.

        Dense rows in memory that are one block are cut and wrapped here, and not in each pass; few ones
        are clipped here, too.
        """
        width = max(self.X.shape[1], columns)
        if is_lazy(self.X) or self.sparse or not 0 < self.n_rows <= rows_in_block(width):
            return partial(self._sum_of, aligned)
        all_rows = self._wrap(lambda *block: block)
        ((rows, *aligned),) = over_blocks(all_rows, self.X, (*self._weights(), *aligned), width)
        if rows.X.size <= FEW_ENTRIES:
            rows = rows.clipped_copy()
        return lambda function, columns, dense=False: function(rows, *aligned)

    def _sum_of(self, aligned, function, columns, dense=False):
        return self.sum(function, *aligned, columns=columns, dense=dense)

    def map(self, function, *aligned, columns):
        """Collect ``function(rows, *aligned_blocks)``, one entry a row."""
        return block_map(
            self._wrap(function),
            self.X,
            *self._weights(),
            *aligned,
            n_jobs=self.n_jobs,
            row_elements=max(self.X.shape[1], columns),
            beside=columns,
        )

    def _wrap(self, function):
        clip, constant = self.clip, self.constant
        read, weighted = self.factor is None, self.weight is not None

        def on_block(X, *aligned):
            if read:
                X = canonical(X)
                aligned = clip(X), *aligned
            factor, *aligned = aligned
            if np.isnan(factor).any():
                factor[:] = clip(X)  # a view of those of the design
            weight, *aligned = aligned if weighted else (None, *aligned)
            return function(Rows(X, factor, constant, weight), *aligned)

        return on_block

    def _weights(self):
        return tuple(known for known in (self.factor, self.weight) if known is not None)

    def dot(self, W, function=np.asarray):
        """Return A @ W for all rows, shape (n, k), or a function of it block by block."""
        return self.map(lambda rows: function(rows.dot(W)), columns=W.shape[1])


def design_and_targets(problem, records):
    """Return the design of records, and the targets of shape (n, K).

    Of a classification these are the labels, -1 or 1, of the one-vs-rest problems: one for two
    classes, else one for each. Otherwise the targets, with K = 1.
    """
    design, n_columns, labels = problem.design(records.X), 1, _column
    if "classes_" in records.public:
        positive = records.classes[1:] if len(records.classes) == 2 else records.classes
        n_columns, labels = len(positive), partial(_signs, positive=positive)
    design.weight, design.n_samples = weights_of(problem.weights, records), records.shape.n_samples
    clipped = design.clipped_once(labels, records.y, n_columns)
    return clipped or (design, block_map(labels, records.y, row_elements=n_columns))


def _column(y):
    return y[:, None]


def _signs(y, positive):
    return np.where(y[:, None] == positive, 1, -1).astype(np.int8)


def _dense(X):
    return X.toarray() if isinstance(X, CodedRows) else X


def _squares(entries, factor):
    # scale before squaring, which might overflow
    return (factor * entries) ** 2


def _clip_factor(block, bounds):
    factor = np.ones((block.shape[0], 1))
    for norm, bound in bounds.items():
        factor = np.minimum(factor, _factor_to(block, norm, bound))
    return factor


def _factor_to(block, norm, bound):
    with np.errstate(over="ignore"):
        norms = row_norms(block, norm)
    huge, unit = np.isinf(norms[:, 0]), np.ones_like(norms)
    if huge.any():  # squares or sums overflow, so the norm must be computed in other units
        unit[huge] = _largest(block[huge])
        if np.isinf(unit).any():  # duplicate entries of a sparse row add up, and may overflow
            raise ValueError(
                "Input X contains infinity: entries of a sparse matrix that are stored more than "
                "once add up to it; call sum_duplicates() and bound the columns first."
            )
        norms[huge] = row_norms(on_each_row(np.divide, block[huge], unit[huge]), norm)
    # the small shrinkage keeps the norm within the bound despite rounding
    shrinkage = 1 - max(2.0**-45, (block.shape[1] + 8) * 2.0**-52)
    # a warning about short rows, which need no factor, would disclose them
    with np.errstate(divide="ignore", over="ignore"):
        factor = bound / norms * shrinkage / unit
    # for a huge row the factor may be subnormal, with fewer digits than the shrinkage covers
    return np.nextafter(factor, 0.0)


def row_norms(block, norm):
    """Return the norms of the rows of a block, shape (b, 1); infinite where squares overflow."""
    if isinstance(block, CodedRows):
        sums = block.power_sums(1 if norm == "l1" else 2)[:, None]
    elif sparse.issparse(block):
        sums = row_sums(block, abs(block.data) if norm == "l1" else block.data * block.data)[:, None]
    elif norm == "l1":
        sums = abs(block) @ np.ones((block.shape[1], 1))
    else:
        sums = np.einsum("ij,ij->i", block, block)[:, None]
    return sums if norm == "l1" else np.sqrt(sums)


def largest_norm(X):
    """Return the largest l2 norm of a row, a function of the records; inf where squares overflow."""
    return float(block_map(lambda block: row_norms(block, "l2"), X, beside=1).max())


def _largest(block):
    largest = abs(block).max(axis=1)
    return (largest.toarray() if sparse.issparse(block) else largest).reshape(-1, 1)
