"""Type aliases of the public functions, for scikit-learn's untyped arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt


class HasShape(Protocol):
    """A dataframe or a sparse matrix, of any library."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""


class Splitter(Protocol):
    """A splitter that yields training and test indices."""

    def split(self, *args: Any, **kwargs: Any) -> Iterable[Any]:
        """Return pairs of index arrays."""

    def get_n_splits(self, *args: Any, **kwargs: Any) -> int:
        """Return the number of splits."""


# rows, in every form that scikit-learn accepts
MatrixLike: TypeAlias = npt.ArrayLike | HasShape
Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
FloatOrArray: TypeAlias = np.float64 | FloatArray
Shape: TypeAlias = int | tuple[int, ...]
# scikit-learn's estimators have no types
Estimator: TypeAlias = Any
ParamGrid: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any]]
CrossValidation: TypeAlias = int | Splitter | Iterable[Any] | None
PathLike: TypeAlias = str | os.PathLike[str]
# the argument and the result of a decorator
Function = TypeVar("Function", bound=Callable[..., Any])
