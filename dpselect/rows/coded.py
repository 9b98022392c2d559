"""Rows of numbers and categories, in which each category is a code and not a row of its features.

A product with such rows looks up one number for each code, instead of multiplying all features of the
category by 0 and others that repeat.
"""

from functools import reduce

import numpy as np

# a product with more columns is faster with dense rows
MOST_CODED = 8


class CodedRows:
    """A block of b rows: dense features, and features that codes stand for.

    Parameters
    ----------
    dense : ndarray of shape (b, m)
    places : ndarray of int, shape (m,)
        Of the dense features.
    codes : list of ndarray of int, shape (b,)
        From 0 on. Each stands for one category or several: numbers to the bases that their tables have.
    tables : list of list of (slice, ndarray of shape (width, n_codes))
        For each of `codes`, the categories that it stands for, the last one counting fastest: the places
        of the features of each, and these features of each of its own codes.
    n_columns : int
        Number of features.
    """

    ndim, dtype = 2, np.dtype(np.float64)

    def __init__(self, dense, places, codes, tables, n_columns):
        self.dense, self.places, self.codes, self.tables = dense, places, codes, tables
        self.shape = len(dense), n_columns

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, chosen):
        """Return the chosen rows."""
        codes = [code[chosen] for code in self.codes]
        return CodedRows(self.dense[chosen], self.places, codes, self.tables, self.shape[1])

    def __matmul__(self, W):
        """Return the product with W of shape (n_columns, k)."""
        product = self.dense @ W[self.places]
        for codes, tables in zip(self.codes, self.tables):
            of_codes = _combined(table.T @ W[outputs] for outputs, table in tables)
            product += np.take(of_codes, codes, axis=0, mode="clip")
        return product

    def adjoint_dot(self, G):
        """Return the product of the transpose with G of shape (b, k)."""
        product = np.empty((self.shape[1], G.shape[1]))
        product[self.places] = (G.T @ self.dense).T
        for codes, tables in zip(self.codes, self.tables):
            bases = [table.shape[1] for _, table in tables]
            sums = np.transpose([np.bincount(codes, g, np.prod(bases)) for g in G.T])
            sums = sums.reshape(*bases, G.shape[1])
            for i, (outputs, table) in enumerate(tables):
                others = tuple(j for j in range(len(bases)) if j != i)
                product[outputs] = table @ sums.sum(axis=others)
        return product

    def power_sums(self, power):
        """Return the sums of the absolute features of each row, or of their squares, shape (b,)."""
        if power == 2:
            sums = np.einsum("ij,ij->i", self.dense, self.dense)
        else:
            # column by column, without a copy of all
            sums = reduce(np.add, map(np.abs, self.dense.T), np.zeros(len(self)))
        for codes, tables in zip(self.codes, self.tables):
            powers = (np.abs(table) ** power for _, table in tables)
            of_codes = _combined(each.sum(axis=0)[:, np.newaxis] for each in powers)
            sums += np.take(of_codes[:, 0], codes, mode="clip")
        return sums

    def toarray(self):
        """Return the features, shape (b, n_columns)."""
        rows = np.empty(self.shape[::-1])
        rows[self.places] = self.dense.T
        for codes, tables in zip(self.codes, self.tables):
            own = np.unravel_index(codes, [table.shape[1] for _, table in tables])
            for places, (outputs, table) in zip(own, tables):
                np.take(table, places, axis=1, out=rows[outputs], mode="clip")
        return rows.T


def _combined(parts):
    """Return the sum of one row of each part, shape (n_i, k), for all codes, shape (n_1 n_2 ..., k)."""
    return reduce(lambda one, other: (one[:, np.newaxis] + other).reshape(-1, one.shape[1]), parts)
