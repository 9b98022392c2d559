"""Files that the command writes, whole or not at all."""

import os
import pickle
import secrets
from contextlib import suppress
from functools import partial
from importlib import import_module
from os import fsync, replace
from zipfile import ZIP_DEFLATED

from ..density import DPHistogramDensity
from ..export import to_onnx, to_sklearn
from ..report.document import form_of
from .messages import LOGGER, CommandError, name_of
from .printing import predictor

# how the name of a file begins that is not whole yet
UNFINISHED = ".dpselect-unfinished-"
MODELS = (".skops", ".pkl")


class OutputFile:
    """Where something goes; everything that can fail early fails when this is made.

    A release that cannot be written has cost its privacy loss for nothing.

    Parameters
    ----------
    option : str
        That gave the path.
    path : str
    force : bool
        Whether a file that is there is replaced.

    Raises
    ------
    CommandError
        If the folder takes no files, or there is a file and it is not to be replaced.
    """

    def __init__(self, option, path, force):
        self.option, self.path = option, path
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise CommandError(f"The folder of {option} {name_of(path)} does not exist.")
        if os.path.isdir(path) or not os.access(folder, os.W_OK):
            raise CommandError(f"The file {option} {name_of(path)} cannot be written.")
        if os.path.exists(path) and not force:
            raise CommandError(
                f"The file {option} {name_of(path)} is there already; give another name, or --force to "
                "replace it."
            )

    def write(self, content, cost=""):
        """Write bytes or a text; the file has its name only when all of it is on the disk.

        Parameters
        ----------
        content : bytes or str
        cost : str, default=""
            What is lost if the disk refuses it.

        Raises
        ------
        CommandError
            If the disk refuses it; what was there before stays.
        """
        if isinstance(content, str):
            content = content.encode()
        LOGGER.info("writing %s", name_of(self.path))
        made = os.path.join(os.path.dirname(self.path), f"{UNFINISHED}{secrets.token_hex(8)}")
        try:
            with open(made, "xb") as stream:
                stream.write(content)
                stream.flush()
                fsync(stream.fileno())
            replace(made, self.path)
        except OSError as error:
            raise CommandError(
                f"The file {self.option} {name_of(self.path)} could not be written "
                f"({error.strerror}){cost}."
            ) from None
        finally:
            with suppress(OSError):
                os.unlink(made)


class ModelFile(OutputFile):
    """Where a model goes, a .pkl or .skops; skops is asked for when this is made."""

    def __init__(self, path, force):
        super().__init__("--save", path, force)
        skops = None if ending_of(path, "The file --save", MODELS) == ".pkl" else skops_io()
        self._dumps = pickle.dumps if skops is None else partial(skops.dumps, compression=ZIP_DEFLATED)

    def write_model(self, model):
        self.write(self._dumps(model), ", and the privacy loss of the model has been spent")


class ReportFile(OutputFile):
    """Where a privacy statement goes, in the form that its ending says."""

    def __init__(self, option, path, force):
        super().__init__(option, path, force)
        try:
            self._form = form_of(path)
        except ValueError:
            raise CommandError(f"The file {option} {name_of(path)} must end in .html, .md or "
                               ".json.") from None

    def write_report(self, report):
        self.write(getattr(report, self._form)())


class ExportFile(OutputFile):
    """Where a model goes for programs without dpselect, in the form that its ending says."""

    def __init__(self, path, force):
        super().__init__("--output", path, force)
        self._ending = ending_of(path, "The file --output", (".onnx", ".skops", ".csv"))

    def write_export(self, model):
        released = predictor(model)
        density = isinstance(released, DPHistogramDensity)
        if density != (self._ending == ".csv"):
            said = "a density goes into .csv" if density else "a .csv holds the cells of a density"
            raise CommandError(f"{said.capitalize()}, and {name_of(self.path)} ends in "
                               f"{self._ending}; give another ending.")
        if density:
            self.write(released.to_frame().to_csv(index=False, lineterminator="\n"))
        else:
            try:
                self.write(
                    to_onnx(model).SerializeToString() if self._ending == ".onnx"
                    else skops_io().dumps(to_sklearn(model), compression=ZIP_DEFLATED)
                )
            except ImportError:
                raise CommandError(
                    'A .onnx file needs onnx; run python -m pip install "dpselect[onnx]" first.'
                ) from None
            except (TypeError, ValueError) as error:  # it reads a schema and a released model
                raise CommandError(str(error)) from None


def ending_of(path, what, endings):
    """Return the ending of a path, or refuse it."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in endings:
        raise CommandError(f"{what} {name_of(path)} must end in {', '.join(endings[:-1])} or "
                           f"{endings[-1]}.")
    return ending


def skops_io():
    """Return the module of skops that reads and writes files, or say how to install it."""
    try:
        return import_module("skops.io")
    except ImportError:
        raise CommandError(
            'A .skops file needs skops; run python -m pip install "dpselect[skops]" first.'
        ) from None
