"""Write files atomically; a model that was paid for is kept under some name."""

import json
import os
import pickle
import secrets
import tempfile
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import count
from os import fsync, replace
from zipfile import ZIP_DEFLATED

from ..density import DPHistogramDensity
from ..export import to_onnx, to_sklearn
from ..ledger import is_ledger_file
from ..preprocessing.schema import CategoryColumn
from ..report.document import form_of
from .messages import LOGGER, CommandError, name_of
from .printing import predictor

# prefix of the temporary name of an incomplete file
UNFINISHED = ".dpselect-unfinished-"
# least free space on a disk, in bytes
ROOM = 2**20
MODELS = (".skops", ".pkl")


class OutputFile:
    """A file to write; errors that can be found early are raised by the constructor.

    A release that cannot be written has cost its privacy loss for nothing.

    Parameters
    ----------
    option : str
        That gave the path.
    path : str
    force : bool
        Whether a file that is there is replaced; one of a ledger never is.
    paid_for : bool, default=False
        Whether it has cost a privacy loss by the time it is written: another folder is taken then, if
        this one takes no more.

    Raises
    ------
    CommandError
        If the folder takes no files, or there is a file and it is not to be replaced.
    """

    def __init__(self, option, path, force, paid_for=False):
        self.option, self.path, self.paid_for = option, path, paid_for
        self._force = force
        shown, folder = f"The file {option} {name_of(path)}", os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise CommandError(f"The folder of {option} {name_of(path)} does not exist.")
        if is_ledger_file(path):
            raise CommandError(
                f"{shown} is that of a ledger, or of another database of SQLite, and no command "
                "replaces what was counted; give another name."
            )
        if os.path.exists(path) and not os.path.isfile(path):  # a folder, a pipe, a device
            raise CommandError(f"{shown} cannot be written.")
        if os.path.lexists(path) and not force:
            raise CommandError(f"{shown} is there already; give another name, or --force to replace it.")
        try:
            os.unlink(_temporary_file(folder, secrets.token_bytes(ROOM)))
        except OSError as error:
            raise CommandError(f"{shown} cannot be written ({error.strerror}).") from None

    def write(self, content, cost=""):
        """Write bytes or a text atomically: the file gets its name when all of it is on disk.

        Parameters
        ----------
        content : bytes or str
        cost : str, default=""
            What is lost if the disk refuses it.

        Raises
        ------
        CommandError
            If the disk refuses it, or another file has the name by now, which stays: it says under which
            other name the content was written, if it was.
        """
        if isinstance(content, str):
            content = content.encode()
        LOGGER.info("writing %s", name_of(self.path))
        folder, base = os.path.split(self.path)
        try:
            name = _written(folder or ".", base, content, self._force)
            if name == base:
                return
            why = "could not have its name, which another file has by now"
        except OSError as error:
            why, name = f"could not be written ({error.strerror})", None
            for folder in _fallback_folders() if self.paid_for else ():
                with suppress(OSError):
                    name = _written(folder, base, content)
                    break
        shown = f"The file {self.option} {name_of(self.path)} {why}"
        if name is None:
            raise CommandError(f"{shown}{cost}.")
        raise CommandError(
            f"{shown}; it was written to {name_of(os.path.join(folder, name), limit=5000)} instead."
        )


def write_all(*writes):
    """Call each function, also after a CommandError of another; then raise one error for all."""
    said = []
    try:
        for write in writes:
            try:
                write()
            except CommandError as error:
                said.append(str(error))
    finally:
        # raise this even instead of another error: the user must learn where the model is
        if said:
            raise CommandError(" ".join(said)) from None


def _fallback_folders():
    """Return fallback folders for what cannot be written where it should be."""
    found = []
    for find in (os.getcwd, tempfile.gettempdir):
        with suppress(FileNotFoundError):  # the working folder was removed, or there is no temporary one
            found.append(find())
    return found


def _temporary_file(folder, content):
    """Write a new file under a temporary name, and return its path; an incomplete file is removed."""
    made = os.path.join(folder, f"{UNFINISHED}{secrets.token_hex(8)}")
    try:
        with open(made, "xb") as stream:
            stream.write(content)
            stream.flush()
            fsync(stream.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise
    return made


def _written(folder, base, content, force=False):
    """Write a file into a folder, and return its name: `base`, or a free one that starts like it."""
    folder = os.path.realpath(folder)
    made = _temporary_file(folder, content)
    try:
        if force and not is_ledger_file(os.path.join(folder, base)):
            replace(made, os.path.join(folder, base))
            return base
        start, ending = os.path.splitext(base)
        for k in count(1):
            name = base if k == 1 else f"{start}-{k}{ending}"
            with suppress(FileExistsError):
                give_name(made, os.path.join(folder, name))
                return name
    finally:
        with suppress(OSError):
            os.unlink(made)


def give_name(made, path):
    """Give a complete file its name; FileExistsError if another file has it."""
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:
        # no hard links on this file system: reserve the name by an empty file
        open(path, "xb").close()
        replace(made, path)


class ModelFile(OutputFile):
    """The file for a model, a .pkl or .skops; the constructor imports skops."""

    def __init__(self, path, force):
        super().__init__("--save", path, force, paid_for=True)
        skops = None if ending_of(path, "The file --save", MODELS) == ".pkl" else skops_io()
        self._dumps = pickle.dumps if skops is None else partial(skops.dumps, compression=ZIP_DEFLATED)

    def write_model(self, model):
        self.write(
            self._dumps(model),
            ", and the privacy loss of the model has been spent: what was printed is all that is left "
            "of it",
        )


class ReportFile(OutputFile):
    """The file for a privacy statement, in the format of its ending."""

    def __init__(self, option, path, force, paid_for=False):
        super().__init__(option, path, force, paid_for)
        try:
            self._form = form_of(path)
        except ValueError:
            raise CommandError(
                f"The file {option} {name_of(path)} must end in .html, .md or .json."
            ) from None

    def write_report(self, report):
        self.write(getattr(report, self._form)())


class PlanFile(OutputFile):
    """The file for a plan: a page with controls, or its numbers."""

    def __init__(self, path, force):
        super().__init__("--output", path, force)
        self._ending = ending_of(path, "The file --output", (".html", ".json"))

    def write_plan(self, plan, ledger=None):
        if not hasattr(plan, "to_html"):
            raise CommandError(
                "--output draws plans of a fixed epsilon, and --excess-risk looks for one; leave it out."
            )
        numbers = self._ending == ".json"
        self.write(
            json.dumps(plan.to_grid(ledger), allow_nan=False) if numbers else plan.to_html(ledger)
        )


class ExportFile(OutputFile):
    """The file for a model without dpselect, in the format of its ending."""

    def __init__(self, path, force):
        super().__init__("--output", path, force)
        self._ending = ending_of(path, "The file --output", (".onnx", ".skops", ".csv"))

    def write_export(self, model, columns):
        released = predictor(model)
        density = isinstance(released, DPHistogramDensity)
        if density != (self._ending == ".csv"):
            said = "a density goes into .csv" if density else "a .csv holds the cells of a density"
            raise CommandError(
                f"{said.capitalize()}, and {name_of(self.path)} ends in "
                f"{self._ending}; give another ending."
            )
        if density:
            n_records = getattr(getattr(model, "plan_", None), "n_samples", None)
            table = cells_of_density(released.to_frame(), columns, n_records)
            self.write(table.to_csv(index=False, lineterminator="\n"))
        else:
            try:
                self.write(
                    to_onnx(model).SerializeToString()
                    if self._ending == ".onnx"
                    else skops_io().dumps(to_sklearn(model), compression=ZIP_DEFLATED)
                )
            except ImportError:
                raise CommandError(
                    'A .onnx file needs onnx; run python -m pip install "dpselect[onnx]" first.'
                ) from None
            # about a schema or a released model, not about records
            except (TypeError, ValueError) as error:
                raise CommandError(str(error)) from None


def cells_of_density(table, columns, n_records=None):
    """Return the cells of a density with the names of categories, and with counts of records.

    Parameters
    ----------
    table : DataFrame
        As ``to_frame`` returns it.
    columns : dict
        Name -> NumberColumn or CategoryColumn.
    n_records : int, default=None
        That the density was fitted on, which is public.
    """
    for name, column in columns.items():
        if isinstance(column, CategoryColumn):
            place = table.columns.get_loc(f"{name} from")
            codes = table.pop(f"{name} from") + 0.5
            del table[f"{name} to"]
            table.insert(place, name, [str(column.levels[int(code)]) for code in codes])
    if n_records is None:
        return table
    return table.assign(count=(table["share"] * n_records).round().astype(int))


def ending_of(path, what, endings):
    """Return the ending of a path, or refuse it."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in endings:
        raise CommandError(
            f"{what} {name_of(path)} must end in {', '.join(endings[:-1])} or {endings[-1]}."
        )
    return ending


def skops_io():
    """Return the module skops.io, or raise with instructions how to install it."""
    try:
        return import_module("skops.io")
    except ImportError:
        raise CommandError(
            'A .skops file needs skops; run python -m pip install "dpselect[skops]" first.'
        ) from None
