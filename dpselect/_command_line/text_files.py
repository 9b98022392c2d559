"""Read CSV files: their encoding, separator and header, and then blocks of columns.

The names in the header are public; the cells are not, so no message holds one.
"""

import bz2
import csv
import gzip
import io
import lzma
import re
from dataclasses import dataclass

from .messages import CommandError, name_of

PACKED = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SEPARATORS = ",;\t|"
# marks at the start of a file
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
BLOCK = 2**22  # bytes that are parsed at once
QUOTED = re.compile(r'"(?:[^"]|"")*"')
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written.

    Attributes
    ----------
    separator : str, default=None
        Of columns; None is found in the header.
    encoding : str, default=None
        None is UTF-8, or UTF-16 with its mark.
    decimal : str, default="."
        Mark before the decimals of a number.
    thousands : str, default=""
        Mark between the thousands of a number.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str = ""

    def numbers(self, cells):
        """Return an Arrow array of texts whose numbers have a decimal point and no other mark."""
        import pyarrow.compute as pc

        if self.thousands:
            cells = pc.replace_substring(cells, self.thousands, "")
        if self.decimal != ".":
            # a point would be read as a decimal point
            cells = pc.replace_substring(pc.replace_substring(cells, ".", "_"), self.decimal, ".")
        return cells


def written(values, form):
    """Return values as they are written into a file of a format."""
    if values.dtype.kind != "f" or form.decimal == ".":
        return values.tolist()
    return [str(value).replace(".", form.decimal) for value in values.tolist()]


class TextFile:
    """A CSV file whose header has been read.

    Attributes
    ----------
    names : list of str
        Of the columns; "" where there is none.
    form : TextFormat
        With the separator and the encoding that were found.
    """

    def __init__(self, path, packing, form):
        self.path, self._open = path, PACKED[packing]
        with self._open(path, "rb") as stream:
            start = stream.read(3)
        found = next((code for mark, code in MARKS.items() if start.startswith(mark)), "utf-8")
        encoding = form.encoding or found
        with self._text(encoding) as stream:
            lines = iter(stream.readline, "")
            self._skipped, separator, header = 0, form.separator, ""
            while not header:
                header = _record(lines)
                if not header:
                    raise CommandError(
                        f"The file {name_of(path)} is empty; its first row must hold the names of the "
                        "columns."
                    )
                self._skipped += len(header.splitlines())
                if said := SEPARATOR_LINE.fullmatch(header):
                    separator = separator or said[1]
                if said or not header.strip(f'{SEPARATORS}{separator or ""}" \r\n'):
                    header = ""
            first = next((record for record in iter(lambda: _record(lines), "") if record.strip()), "")
        self.form = TextFormat(
            separator or _separator(header, first), encoding, form.decimal, form.thousands
        )
        (names,) = self._rows([header])
        self.names = [name.strip() for name in names]
        row = next(self._rows([first]), [])
        # separators at the ends of records alone
        self.names += [""] if len(row) == len(names) + 1 and not row[-1].strip() else []
        spaced = re.compile(re.escape(self.form.separator) + ' +"')
        self._spaced = any(map(spaced.search, (header, first)))

    def blocks(self, places):
        """Yield record batches of the columns at these places, all of texts."""
        from pyarrow import PythonFile, csv, string, transcoding_input_stream

        names = list(map(str, range(len(self.names))))
        wanted = [names[place] for place in places]
        with self._open(self.path, "rb") as stream:
            skipped = self._skipped
            if self._spaced:
                stream, skipped = io.BufferedReader(_Chunks(self._tidied())), 0
            elif self._quotes():
                self._check()
            if not self._spaced and self.form.encoding not in ("utf-8", "utf-8-sig"):
                stream = transcoding_input_stream(PythonFile(stream), self.form.encoding, "utf-8")
            reader = csv.open_csv(
                stream,
                csv.ReadOptions(
                    use_threads=False, block_size=BLOCK, skip_rows=skipped, column_names=names
                ),
                csv.ParseOptions(delimiter=self.form.separator, newlines_in_values=True),
                csv.ConvertOptions(include_columns=wanted, column_types=dict.fromkeys(wanted, string())),
            )
            with reader:
                yield from reader

    def _text(self, encoding):
        return self._open(self.path, "rt", encoding=encoding, newline="")

    def _rows(self, lines):
        return csv.reader(lines, delimiter=self.form.separator, skipinitialspace=True, strict=True)

    def _records(self):
        with self._text(self.form.encoding) as stream:
            for _ in range(self._skipped):
                stream.readline()
            yield from filter(None, self._rows(stream))

    def _quotes(self):
        """Return whether there is a quotation mark in the file."""
        mark = '"'.encode(self.form.encoding)[-1:]
        with self._open(self.path, "rb") as stream:
            return any(mark in chunk for chunk in iter(lambda: stream.read(BLOCK), b""))

    def _check(self):
        """Refuse text after a closing quotation mark, which Arrow would append to the cell."""
        for _ in self._records():
            pass

    def _tidied(self):
        """Yield the records as bytes without blanks before quotation marks, which Arrow cannot skip."""
        for row in self._records():
            text = io.StringIO()
            csv.writer(text, delimiter=self.form.separator, lineterminator="\n").writerow(row)
            yield text.getvalue().encode()


class _Chunks(io.RawIOBase):
    """A binary stream of chunks of bytes."""

    def __init__(self, chunks):
        self._chunks, self._left = chunks, b""

    def readable(self):
        return True

    def readinto(self, buffer):
        self._left = self._left or next(self._chunks, b"")
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n


def _record(lines):
    """Return the lines of the next record, joined; "" at the end."""
    text = next(lines, "")
    for line in lines if text.count('"') % 2 else ():
        text += line
        if text.count('"') % 2 == 0:
            break
    return text


def _separator(header, first):
    """Return the separator that is most frequent in the header, outside of quotation marks.

    One that the first record has as often is preferred.
    """
    names, cells = (QUOTED.sub("", text) for text in (header, first))

    def likeness(separator):
        n = names.count(separator)
        return (n > 0 and cells.count(separator) in (n, n + 1), n)

    return max(SEPARATORS, key=likeness)
