"""Read CSV files: their encoding, separator and header, and then blocks of columns.

The names in the header are public; the cells are not, so no message holds one.
"""

import bz2
import csv
import gzip
import io
import lzma
import re
from dataclasses import dataclass, replace

from .messages import CommandError, name_of

PACKED = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SEPARATORS = ",;\t|"
# marks at the start of a file
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
BLOCK = 2**22  # bytes that are parsed at once
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
    dates : str, default=None
        Format of dates, in place of what a schema says.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str = ""
    dates: str | None = None

    def numbers(self, cells):
        """Return an Arrow array of texts whose numbers have a decimal point and no other mark.

        A text that would be a number with a decimal point, and is none with these marks, becomes none.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if (self.decimal, self.thousands) == (".", ""):
            return cells
        cells = cells.cast(pa.string())
        decimal, thousands = re.escape(self.decimal), re.escape(self.thousands)
        # groups of two digits are those of India
        whole = rf"(\pN+|\pN{{1,3}}({thousands}\pN{{2,3}})*{thousands}\pN{{3}})"
        written = rf"^\s*[+-]?({whole}({decimal}\pN*)?|{decimal}\pN+)([eE][+-]?\pN+)?\s*$"
        plain = r"^\s*[+-]?(\pN+(\.\pN*)?|\.\pN+)([eE][+-]?\pN+)?\s*$"
        bare = pc.replace_substring(cells, self.thousands, "") if self.thousands else cells
        bare = pc.replace_substring(bare, self.decimal, ".")
        others = pc.if_else(
            pc.match_substring_regex(cells, plain), pc.binary_join_element_wise("_", cells, ""), cells
        )
        return pc.if_else(pc.match_substring_regex(cells, written), bare, others)


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
        encoding = found if form.encoding in (None, "utf-8") else form.encoding
        with self._text(encoding) as stream:
            lines = iter(stream.readline, "")
            self._skipped, separator, header = 0, form.separator, ""
            while not header:
                found = _record(lines, separator)
                header = "".join(found).removeprefix("\ufeff")
                if not found:
                    raise CommandError(
                        f"The file {name_of(path)} is empty; its first row must hold the names of the "
                        "columns."
                    )
                self._skipped += len(found)
                if said := SEPARATOR_LINE.fullmatch(header):
                    separator = separator or said[1]
                if said or not header.strip(f'{SEPARATORS}{separator or ""}" \r\n'):
                    header = ""
            records = iter(lambda: "".join(_record(lines, separator)), "")
            first = next(filter(str.strip, records), "")
        separator = separator or _separator(header, first)
        self.form = replace(form, separator=separator, encoding=encoding)
        (names,) = self._rows([header])
        self.names = [name.strip() for name in names]
        row = next(self._rows([first]), [])
        # separators at the ends of records alone
        self._ends = len(row) == len(names) + 1 and not row[-1].strip()
        self.names += [""] if self._ends else []

    def blocks(self, places):
        """Yield record batches of the columns at these places, all of texts."""
        from pyarrow import PythonFile, string, transcoding_input_stream
        from pyarrow import csv as arrow_csv

        names = list(map(str, range(len(self.names))))
        wanted = [names[place] for place in places] + (names[-1:] if self._ends else [])
        quoted, spaced = self._quotes()
        with self._open(self.path, "rb") as stream:
            skipped = self._skipped
            if spaced:
                stream, skipped = io.BufferedReader(_Chunks(self._tidied())), 0
            elif quoted:
                self._check()
            if not spaced and self.form.encoding not in ("utf-8", "utf-8-sig"):
                stream = transcoding_input_stream(PythonFile(stream, "r"), self.form.encoding, "utf-8")
            reader = arrow_csv.open_csv(
                stream,
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=BLOCK, skip_rows=skipped, column_names=names
                ),
                arrow_csv.ParseOptions(delimiter=self.form.separator, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, string())
                ),
            )
            with reader:
                yield from map(self._without_ends, reader) if self._ends else reader

    def _without_ends(self, block):
        """Return a block without its last column, or refuse one that holds anything."""
        if any(cell.strip() for cell in block.columns[-1].unique().to_pylist()):
            raise csv.Error("the records have more fields than the header")
        return block.select(block.schema.names[:-1])

    def _text(self, encoding):
        return self._open(self.path, "rt", encoding=encoding, newline="")

    def _rows(self, lines):
        csv.field_size_limit(2**31 - 1)  # free texts are longer than Python expects
        return csv.reader(lines, delimiter=self.form.separator, skipinitialspace=True, strict=True)

    def _records(self):
        with self._text(self.form.encoding) as stream:
            for _ in range(self._skipped):
                stream.readline()
            yield from filter(None, self._rows(stream))

    def _quotes(self):
        """Return whether the file has quotation marks, and whether there are blanks before one."""
        spaced = re.compile(rf'[\r\n{re.escape(self.form.separator)}] +"')
        # bytes of ASCII are no parts of other letters in UTF-8
        utf8 = self.form.encoding in ("utf-8", "utf-8-sig")
        quoted, before = False, "\n"
        with self._text("latin-1" if utf8 else self.form.encoding) as stream:
            for chunk in iter(lambda: stream.read(BLOCK), ""):
                quoted = quoted or '"' in chunk
                if quoted and spaced.search(before + chunk):
                    return True, True
                before = chunk[max(0, len(chunk.rstrip(" ")) - 1) :]
        return quoted, False

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


def _quoted(separator):
    """Return the patterns of a cell in quotation marks, and of one that does not end."""
    start = rf'(^|[{re.escape(separator or SEPARATORS)}]) *"[^"]*(?:""[^"]*)*'
    return re.compile(start + r'"(?!")'), re.compile(start + "$")


def _record(lines, separator):
    """Return the lines of the next record; none at the end."""
    quoted, unfinished = _quoted(separator)
    found, inside = [], False
    for line in lines:
        found.append(line)
        inside = bool(unfinished.search(quoted.sub(r"\1", '"' * inside + line)))
        if not inside:
            break
    return found


def _separator(header, first):
    """Return the separator that is most frequent in the header, outside of quotation marks.

    One that the first record has as often is preferred.
    """
    names, cells = (_quoted(None)[0].sub(r"\1", text) for text in (header, first))

    def likeness(separator):
        n = names.count(separator)
        return (n > 0 and cells.count(separator) in (n, n + 1), n)

    return max(SEPARATORS, key=likeness)
