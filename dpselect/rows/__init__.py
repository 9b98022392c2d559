"""Read rows, in one place: sums and maps over blocks of consecutive rows.

Rows may lie in memory, in a memory map, in chunks that a function reads, or on a Dask cluster; callers
need not know.
"""

from .blocks import (
    as_lazy,
    block_map,
    block_sum,
    gathered,
    hold,
    in_one_place,
    is_lazy,
    map_rows,
    on_first_row,
    run_here,
    sample,
)
from .checked import checked_rows, dummy_rows
from .chunks import RowChunks
from .coded import CodedRows
from .columns import by_columns
from .computed import SlicedRows, TableRows, read_by_block
from .cutting import collect, over_blocks, row_blocks, rows_in_block
from .distributed import is_dask
from .labels import align, distinct, in_memory, on_labels
from .parts import MOST_SPLITS, Parts, in_part
from .source import column_names, is_arrow, library_of
from .sparse_rows import canonical, equal_rows, on_each_row, row_sums, transposed
from .tables import n_rows, take, take_records

__all__ = [
    "MOST_SPLITS",
    "CodedRows",
    "Parts",
    "RowChunks",
    "SlicedRows",
    "TableRows",
    "align",
    "as_lazy",
    "block_map",
    "block_sum",
    "by_columns",
    "canonical",
    "checked_rows",
    "collect",
    "column_names",
    "distinct",
    "dummy_rows",
    "equal_rows",
    "gathered",
    "hold",
    "in_memory",
    "in_one_place",
    "in_part",
    "is_arrow",
    "is_dask",
    "is_lazy",
    "library_of",
    "map_rows",
    "n_rows",
    "on_each_row",
    "on_first_row",
    "on_labels",
    "over_blocks",
    "read_by_block",
    "row_blocks",
    "row_sums",
    "rows_in_block",
    "run_here",
    "sample",
    "take",
    "take_records",
    "transposed",
]
