"""What the command writes replaces no file that somebody else needs, and is kept once it is paid for."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from dpselect import PrivacyLedger, privacy_report
from dpselect._command_line import arguments, files
from dpselect._command_line import file_names as paths
from dpselect.ledger import is_ledger_file

from .conftest import FULL, TRUST

MODEL = ["--save", "m.pkl"]
EVALUATE = ["evaluate", TRUST, "m.pkl", "data.csv", "--target", "out come", "--epsilon", "1"]


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


# --- files that appear while the command runs


def others_write(monkeypatch, name, content=b"precious"):
    """Have a file appear once nothing can be refused any more."""
    written = files._written

    def late(*args):
        Path(name).write_bytes(content)
        monkeypatch.setattr(files, "_written", written)
        return written(*args)

    monkeypatch.setattr(files, "_written", late)


def replaces(self, content, cost=""):
    """The broken way to write: whatever has the name by now is lost."""
    with open(self.path, "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())


def appears(run, folder, monkeypatch, argv, name):
    """Run a command while a file appears under the name of its output; return where the output is."""
    others_write(monkeypatch, name)
    before = {file.name for file in folder.iterdir()}
    code, _, err = run(*argv)
    assert (folder / name).read_bytes() == b"precious"
    (new,) = {file.name for file in folder.iterdir()} - before - {name}
    assert code == 2 and f"{new!r} instead" in err and err.count("\n") == 1
    return folder / new


WRITES = [
    ([*FULL, "--save", "new.skops"], "new.skops"),
    ([*FULL, "--report", "new.html"], "new.html"),
    (["predict", TRUST, "m.pkl", "data.csv", "--output", "new.csv"], "new.csv"),
    (["schema", "data.csv", "--output", "new.json"], "new.json"),
    (["report", TRUST, "m.pkl", "--output", "new.md"], "new.md"),
    ([*EVALUATE, "--report", "new.json"], "new.json"),
    (["export", TRUST, "m.pkl", "--output", "new.onnx"], "new.onnx"),
]


@pytest.fixture
def model(run):
    assert run(*FULL, *MODEL)[0] == 0


@pytest.mark.parametrize("argv, name", WRITES, ids=[f"{argv[0]} {name}" for argv, name in WRITES])
def test_a_file_that_appears_is_kept_and_so_is_the_output(run, folder, monkeypatch, model, argv, name):
    if name.endswith("onnx"):
        pytest.importorskip("onnx")
    new = appears(run, folder, monkeypatch, argv, name)
    assert new.name == name.replace("new", "new-2") and new.stat().st_size > 20


def test_a_twin_that_replaces_what_appears_is_caught(run, folder, monkeypatch):
    def write(self, content, cost=""):
        Path(self.path).write_bytes(b"precious")
        replaces(self, content, cost)

    monkeypatch.setattr(files.OutputFile, "write", write)
    with pytest.raises(AssertionError):
        appears(run, folder, monkeypatch, [*FULL, *MODEL], "m.pkl")


def test_force_replaces_what_appears(run, folder, monkeypatch):
    others_write(monkeypatch, "m.pkl")
    assert run(*FULL, *MODEL, "--force")[0] == 0
    assert run("predict", TRUST, "m.pkl", "data.csv")[0] == 0


@pytest.mark.parametrize("links", [True, False])
def test_free_names_on_every_disk(folder, monkeypatch, links):
    def refuse(*_):
        raise PermissionError

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    names = [files._written(str(folder), "m.pkl", b"new") for _ in range(3)]
    assert names == ["m.pkl", "m-2.pkl", "m-3.pkl"]
    (folder / "n.pkl").symlink_to(folder / "nowhere")  # a name that is taken, though nothing is there
    assert files._written(str(folder), "n.pkl", b"new") == "n-2.pkl"
    assert not any(name.startswith(files.UNFINISHED) for name in contents(folder))


# --- a disk that takes no more, once it was paid


def goes_wrong(monkeypatch, folder, how):
    """Have a folder take no more files once nothing can be refused any more."""
    written = files._written

    def late(where, *args):
        if how == "removed":
            shutil.rmtree(folder, ignore_errors=True)
        elif os.path.samefile(where, folder):
            raise OSError(28, "No space left on device")
        return written(where, *args)

    monkeypatch.setattr(files, "_written", late)


@pytest.mark.parametrize("how", ["full", "removed"])
@pytest.mark.parametrize("option, name", [("--save", "m.pkl"), ("--report", "said.md")])
def test_what_was_paid_for_is_kept_elsewhere(run, folder, monkeypatch, how, option, name):
    (folder / "out").mkdir()
    goes_wrong(monkeypatch, folder / "out", how)
    (folder / name).write_text("precious")
    code, out, err = run(*FULL, option, f"out/{name}")
    kept = folder / name.replace(".", "-2.")
    assert code == 2 and "Released model" in out and err.count("\n") == 1
    assert "could not be written" in err and f"{str(kept)!r} instead" in err
    assert kept.stat().st_size > 1000 and (folder / name).read_text() == "precious"


def test_the_folder_for_temporary_files_is_the_last_one(run, folder, monkeypatch):
    temporary = folder / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    goes_wrong(monkeypatch, folder, "full")
    code, _, err = run(*FULL, *MODEL)
    assert code == 2 and repr(str(temporary / "m.pkl")) in err and (temporary / "m.pkl").exists()
    monkeypatch.setattr(files, "_fallback_folders", list)  # the twin that has no other folder
    code, out, err = run(*FULL, "--save", "n.pkl")
    assert code == 2 and "what was printed is all that is left of it" in err and "Released model" in out


def test_the_folder_where_the_command_runs_is_removed(run, folder, monkeypatch, tmp_path_factory):
    temporary = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    goes_wrong(monkeypatch, folder, "removed")
    code, out, err = run(*FULL, *MODEL)
    assert code == 2 and repr(str(temporary / "m.pkl")) in err and "Released model" in out
    assert (temporary / "m.pkl").stat().st_size > 1000


def test_of_two_outputs_the_second_is_written_after_the_first_has_failed(run, folder, monkeypatch):
    others_write(monkeypatch, "m.pkl")
    code, _, err = run(*FULL, *MODEL, "--report", "said.md")
    assert code == 2 and "m-2.pkl" in err and "epsilon = 2" in (folder / "said.md").read_text()


def test_what_costs_nothing_is_not_written_elsewhere(run, folder, monkeypatch):
    (folder / "out").mkdir()
    goes_wrong(monkeypatch, folder / "out", "full")
    before = contents(folder)
    code, _, err = run("schema", "data.csv", "--output", "out/new.json")
    assert code == 2 and "could not be written (No space left on device).\n" in err
    assert contents(folder) == before


# --- ledgers


@pytest.fixture
def ledger(folder):
    """Names of one ledger, which has entries in its log alone."""
    path = folder / "l.ledger"
    PrivacyLedger(path, 3.0).spend(1.0)
    (folder / "linked.csv").symlink_to(path)
    return path


def is_replaced(run, argv, names):
    """Names of which a command with --force replaces the file."""
    found = []
    for name in names:
        before = Path(name).read_bytes() if os.path.exists(name) else None
        assert run(*argv, name, "--force")[0] in (0, 2)
        if (Path(name).read_bytes() if os.path.exists(name) else None) != before:
            found.append(name)
    return found


NAMES = [
    "l.ledger",
    "./l.ledger",
    "linked.csv",
    "l.ledger-wal",
    "l.ledger-SHM",
    "l.ledger-journal",
    "linked.csv-wal",
    "copy-wal",
]


@pytest.mark.parametrize(
    "argv",
    [
        ["predict", TRUST, "m.pkl", "data.csv", "--output"],
        ["schema", "data.csv", "--output"],
        [*FULL, "--save"],
        [*FULL, "--report"],
        ["report", TRUST, "m.pkl", "--output"],
        [*EVALUATE, "--report"],
        ["export", TRUST, "m.pkl", "--output"],
    ],
    ids=lambda argv: f"{argv[0]} {argv[-1]}",
)
def test_no_ledger_is_replaced_whatever_is_forced(run, folder, ledger, model, argv):
    (folder / "copy-wal").write_bytes(b"\x37\x7f\x06\x82 of a ledger that was lost")
    names = NAMES
    if argv[-1] in ("--save", "--report") or argv[0] in ("report", "export"):
        # of an ending that the option takes, as a ledger can have it
        ending = {"--save": ".pkl", "--report": ".json"}.get(argv[-1], ".skops")
        ending = ".json" if argv[0] == "report" else ending
        names = [f"l{ending}"]
        PrivacyLedger(names[0], 3.0).spend(1.0)
    assert is_replaced(run, argv, names) == []
    assert PrivacyLedger(ledger).spent() == (1.0, 0.0)


def test_a_twin_that_replaces_ledgers_is_caught(run, folder, ledger, monkeypatch):
    (folder / "copy-wal").write_bytes(b"\x37\x7f\x06\x82 of a ledger that was lost")
    monkeypatch.setattr(files, "is_ledger_file", lambda path: False)
    found = is_replaced(run, ["schema", "data.csv", "--output"], NAMES)
    assert {"l.ledger", "l.ledger-wal", "copy-wal"} <= {*found}


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_link_to_where_a_ledger_keeps_its_log_is_not_written(run, folder, ledger, ending):
    for name, target in (("link.csv", ledger.name), ("free.csv", "nothing")):
        (folder / name).symlink_to(f"{target}{ending}")
    assert [is_ledger_file(folder / name) for name in ("link.csv", "free.csv")] == [True, False]
    code, _, err = run("schema", "data.csv", "--output", "link.csv", "--force")
    assert code == 2 and "ledger" in err and not (folder / f"{ledger.name}{ending}").exists()


def test_a_ledger_that_appears_is_not_replaced_by_force(run, folder, ledger, monkeypatch):
    others_write(monkeypatch, "m.pkl", ledger.read_bytes())
    code, _, err = run(*FULL, *MODEL, "--force")
    assert code == 2 and "m-2.pkl" in err
    assert (folder / "m.pkl").read_bytes() == ledger.read_bytes()


def test_no_statement_of_python_replaces_a_ledger(run, folder, model):
    loaded = files.pickle.loads((folder / "m.pkl").read_bytes())
    PrivacyLedger(folder / "l.json", 3.0).spend(1.0)
    with pytest.raises(FileExistsError, match="is that of a ledger"):
        privacy_report(loaded).save(folder / "l.json")
    assert PrivacyLedger(folder / "l.json").spent() == (1.0, 0.0)
    assert not is_ledger_file(folder / "m.pkl") and not is_ledger_file(folder)


def test_only_files_are_replaced(refused, folder):
    os.mkfifo(folder / "pipe.csv")
    assert "cannot be written" in refused("schema", "data.csv", "--output", "pipe.csv", "--force")
    assert "cannot be written" in refused("schema", "data.csv", "--output", "/dev/null", "--force")


@pytest.mark.parametrize("option", ["--save", "--report"])
def test_a_link_to_nothing_is_a_file_before_anything_is_paid(refused, folder, ledger, option):
    name = {"--save": "m.pkl", "--report": "m.json"}[option]
    (folder / name).symlink_to("nothing")
    assert "is there already" in refused(*FULL, "--ledger", ledger.name, option, name)
    assert PrivacyLedger(ledger).spent() == (1.0, 0.0) and not (folder / "nothing").exists()


# --- one file for two uses


@pytest.mark.parametrize(
    "argv, said",
    [
        (["schema", "data.csv", "--output", "data.csv"], "FILE and --output"),
        (["schema", "data.csv", "--output", "./data.csv"], "FILE and --output"),
        (["schema", "data.csv", "--output", "link.csv"], "FILE and --output"),
        (["schema", "data.csv", "--output", "hard.csv"], "FILE and --output"),
        (
            ["schema", "data.csv", "--check", "waits.json", "--output", "waits.json"],
            "--check and --output",
        ),
        ([*FULL, "--report", "folder/../schema.json"], "--schema and --report"),
        ([*FULL, "--ledger", "new.md", "--report", "NEW.md"], "--ledger and --report"),
        ([*FULL, "--save", "m.pkl", "--report", "m.pkl"], "--save and --report"),
        ([*FULL, "--save", "folder/m.pkl", "--report", "alias/m.pkl"], "--save and --report"),
        (["predict", "m.skops", "data.csv", "--output", "m.skops"], "MODEL and --output"),
        (["export", "m.skops", "--output", "M.skops"], "MODEL and --output"),
        (["report", "m.skops", "--ledger", "l.md", "--output", "l.md"], "--ledger and --output"),
        (
            ["evaluate", "m.skops", "data.csv", "--epsilon", "1", "--report", "m.skops"],
            "MODEL and --report",
        ),
    ],
)
def test_one_file_for_two_uses_is_refused_before_anything_is_read(
    refused, folder, monkeypatch, argv, said
):
    (folder / "folder").mkdir()
    (folder / "alias").symlink_to("folder")
    (folder / "link.csv").symlink_to("data.csv")
    os.link(folder / "data.csv", folder / "hard.csv")
    before = contents(folder)
    assert said in refused(*argv, "--force") and contents(folder) == before
    monkeypatch.setattr(arguments, "refuse_shared_files", lambda given: None)  # the twin
    if argv[:2] == ["schema", "data.csv"] and "--check" not in argv:
        with pytest.raises(AssertionError):
            assert said in refused(*argv, "--force")


def test_other_files_are_not_taken_for_one(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert not paths.same_file("data.csv", "schema.json") and not paths.same_file("new", "data.csv")
    assert paths.same_file("data.csv", f"../{folder.name}/data.csv") and paths.same_file("New", "new")
