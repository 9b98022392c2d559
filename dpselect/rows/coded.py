"""Rows of numbers and categories, in which each category is a code and not a row of its features.

A product with such rows looks up one number for each code, instead of multiplying all features of the
category by 0 and others that repeat.
"""

import numpy as np

# a product with more columns is faster with dense rows
MOST_CODED = 8


class CodedRows:
    """A block of b rows: dense features, and features that a code stands for.

    Parameters
    ----------
    dense : ndarray of shape (b, m)
    places : ndarray of int, shape (m,)
        Of the dense features.
    codes : list of ndarray of int, shape (b,)
        For each category, from 0 on.
    tables : list of (slice, ndarray of shape (width, n_codes))
        For each category, the places of its features, and these features of each code.
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
        for codes, (outputs, table) in zip(self.codes, self.tables):
            product += np.take(table.T @ W[outputs], codes, axis=0, mode="clip")
        return product

    def adjoint_dot(self, G):
        """Return the product of the transpose with G of shape (b, k)."""
        product = np.empty((self.shape[1], G.shape[1]))
        product[self.places] = (G.T @ self.dense).T
        for codes, (outputs, table) in zip(self.codes, self.tables):
            n_codes = table.shape[1]
            sums = [np.bincount(codes, weights=g, minlength=n_codes) for g in G.T]
            product[outputs] = table @ np.transpose(sums)
        return product

    def row_sums(self, function):
        """Return the sum over each row of a function of its features, shape (b,)."""
        sums = function(self.dense) @ np.ones(len(self.places))
        for codes, (_, table) in zip(self.codes, self.tables):
            sums += np.take(function(table).sum(axis=0), codes, mode="clip")
        return sums

    def toarray(self):
        """Return the features, shape (b, n_columns)."""
        rows = np.empty(self.shape[::-1])
        rows[self.places] = self.dense.T
        for codes, (outputs, table) in zip(self.codes, self.tables):
            np.take(table, codes, axis=1, out=rows[outputs], mode="clip")
        return rows.T
