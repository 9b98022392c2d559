"""Tables of the pages on running time are the results that are kept; ratios are of the same round."""

import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))
import _timing_contestants  # noqa: E402
import _timing_rounds  # noqa: E402
import _timing_server  # noqa: E402
import compare  # noqa: E402
import cost_tables  # noqa: E402


@pytest.mark.slow
def test_the_tables_of_the_page_are_the_results_that_are_kept():
    pages = "".join((ROOT / "doc" / f"{name}.rst").read_text() for name in ("cost", "big_tables"))
    tables = cost_tables.tables()
    for name, text in tables.items():
        assert (ROOT / "doc" / name).read_text() == text
        assert pages.count(f".. include:: {name}\n") == 1
    assert pages.count(".. include::") == len(tables)
    kept = {path.name for path in (ROOT / "doc").glob("cost_*.inc")}
    assert kept == set(tables)


def test_each_shape_that_is_compared_has_a_result():
    known = compare.read(compare.RESULTS)[compare.WORKLOAD]
    workloads = _timing_contestants.workloads()
    asked = [(workload.part, workload.title, *workload.shape) for workload in workloads]
    assert sorted(asked) == sorted(set(known.itertuples(index=False, name=None)))


def lines(**seconds):
    """Timings of three rounds of one workload, by side and contestant."""
    return pd.DataFrame(
        [
            {
                "part": "single",
                "task": "fit",
                "n": 10,
                "d": 2,
                "run": 1,
                "threads": 1,
                "side": side,
                "contestant": name,
                "round": i,
                "cpu": value,
                "wall": 1.0,
                "warned": "",
            }
            for (side, name), values in seconds["timed"].items()
            for i, value in enumerate(values)
        ]
    )


def test_a_ratio_is_of_the_same_round_and_of_the_fastest_solver_by_its_median():
    ours, slow, fast = ("dpselect", "A"), ("rival", "slow"), ("rival", "fast")
    # the machine is busy in the last round; each solver is the faster one in some round
    (line,) = compare.ratios(
        lines(
            timed={
                ours: [2.0, 4.0, 40.0],
                slow: [0.5, 3.0, 30.0],
                fast: [1.0, 1.0, 20.0],
            }
        )
    ).itertuples()
    assert (line.fastest, line.seconds, line.its, line.ratio) == ("fast", 4.0, 1.0, 2.0)


def test_the_last_run_of_a_workload_counts(tmp_path):
    first = lines(timed={("dpselect", "A"): [1.0, 2.0, 3.0]})
    again = first.assign(run=2, cpu=9.0)
    other = first.assign(task="other")
    pd.concat([first, other, again]).to_csv(tmp_path / "results.csv", index=False)
    known = compare.read(tmp_path / "results.csv")
    assert set(known.loc[known["task"] == "fit", "cpu"]) == {9.0}
    assert len(known) == 6


def test_a_run_goes_on_and_asks_each_contestant_in_each_round(tmp_path, monkeypatch, capsys):
    calls = []

    def contestant(name):
        return _timing_rounds.Contestant(name, name, lambda X, y: calls.append((name, X.shape)))

    def workload(title):
        return _timing_rounds.Workload(
            "small",
            title,
            "labels",
            (20, 2),
            [
                contestant("dpselect"),
                contestant("rival"),
                _timing_rounds.Contestant("not there", "", request={"contestant": "absent"}),
            ],
            2,
        )

    def seconds(call, threads):
        call()
        return 1.0, 1.0, []

    monkeypatch.setattr(_timing_rounds, "seconds", seconds)
    monkeypatch.setattr(compare, "check", lambda shape: "")
    monkeypatch.setattr(compare, "workloads", lambda: [workload("a")])
    path = str(tmp_path / "results.csv")
    compare.main(["--results", path])
    assert sorted(calls) == sorted([("dpselect", (20, 2)), ("rival", (20, 2))] * 3)
    monkeypatch.setattr(compare, "workloads", lambda: [workload("a"), workload("b")])
    compare.main(["--results", path])
    found = compare.read(path)
    assert len(found) == 2 * 4 and len(calls) == 12
    capsys.readouterr()


@pytest.mark.parametrize("cost, slope", [(lambda v: 3 * v, "1.00"), (lambda v: v**2, "2.00")])
def test_an_exponent_is_the_slope_on_logarithmic_axes(cost, slope):
    values = pd.Series([1.0, 10.0, 100.0, 1000.0]).to_numpy()
    assert cost_tables.exponent(values, cost(values)).startswith(slope)


def test_a_projection_scales_work_by_rows_and_columns_and_tasks_by_groups():
    known = pd.DataFrame(
        {
            "model": ["DPLogisticRegression", "DPRidge"],
            "n": 1_000_000,
            "d": 50,
            "chunks": 10,
            "workers": 2,
            "on_workers": 2.0,
            "client": 1.0,
            "tasks": 100,
        }
    )
    *_, logistic, ridge, _ = cost_tables.projection(known).splitlines()
    # 2,000 times the numbers on 100 workers; 30 groups on each and not 2, of 25 tasks, each .01 seconds
    assert logistic.split()[1:] == ["40", "75,000", "750", "790"]
    # each pair of columns: twice as many for each number
    assert ridge.split()[1:] == ["80", "75,000", "750", "830"]


def test_large_tables_are_projected_by_rows_by_files_and_by_groups_of_chunks():
    known = pd.DataFrame(
        {
            "n": 1_000_000,
            "d": 13,
            "files": [4, 44],
            "source": "files",
            "workers": 2,
            "on_workers": 2.5,
            "client": [1.5, 5.5],
            "idle_workers": 0.5,
            "idle_client": 0.5,
            "passes": 7,
            "tasks": [100, 500],
            "between_workers": 1e7,
            "client_above": [1e6, 5e6],
        }
    )
    *_, small, _, large, _ = cost_tables.parquet_projection(known).splitlines()
    # 10 tasks for each of 36 more files, each .01 seconds and 10 kB
    assert small.split()[4:] == ["2", "40", "460", "10", "4.6", "100", "4.6", "3.5"]
    # 3,996 files, and 896 more groups, with 8 tasks for 7 of them, in each of 7 passes
    assert large.split()[4:] == ["100", "4,000", "47,228", "46", "472", "23,077", "472", "800"]


def test_before_is_no_rival_and_takes_part_in_the_same_rounds_by_the_same_contestant():
    before = f"{_timing_rounds.BEFORE}env"
    timed = lines(
        timed={
            ("dpselect", "A"): [2.0, 4.0, 40.0],
            ("dpselect", "B"): [1.0, 1.0, 1.0],
            (before, "A"): [1.0, 4.0, 10.0],
            ("rival", "fast"): [1.0, 1.0, 20.0],
        }
    )
    assert set(compare.ratios(timed)["side"]) == {"rival"}
    # B is new: an older version has none
    (line,) = compare.after_by_before(timed).itertuples()
    assert (line.contestant, line.side_before, line.ratio) == ("A", before, 2.0)
    assert (line.least, line.largest, line.before, line.after) == (1.0, 4.0, 4.0, 4.0)


class Refusing:
    """Another version that does not know a parameter; the answers of a real one are in its place."""

    def __init__(self, name, refuses):
        self.name, self.refuses, self.asked = name, refuses, []

    def seconds(self, request, shape, threads):
        self.asked.append(request)
        if self.refuses:
            raise RuntimeError("In the other Python: TypeError")
        return 1.0, 1.0, []


@pytest.fixture
def workload(monkeypatch):
    monkeypatch.setattr(_timing_rounds, "seconds", lambda call, threads: (1.0, 1.0, []))
    contestants = [
        _timing_rounds.Contestant("dpselect", "A", lambda X, y: None),
        _timing_rounds.Contestant("rival", "R", lambda X, y: None),
    ]
    return _timing_rounds.Workload("single", "fit", "uniform", (4, 2), contestants)


def test_what_another_version_refuses_is_left_out(workload, capsys):
    old, newer = Refusing("old", True), Refusing("newer", False)
    timed = _timing_rounds.play(workload, [1], 2, versions=[old, newer])
    sides = [line["side"] for line in timed]
    assert {side: sides.count(side) for side in sides} == {
        "dpselect": 2,
        "rival": 2,
        f"{_timing_rounds.BEFORE}newer": 2,
    }
    assert len(old.asked) == 1 and len(newer.asked) == 3
    assert newer.asked[0] == {"contestant": "dpselect", "workload": ["single", "fit"], "label": "A"}
    assert f"{_timing_rounds.BEFORE}old is left out" in capsys.readouterr().err


def test_an_error_of_another_library_is_raised(workload):
    rival = Refusing("rivals", True)
    rival.offers = ["theirs"]
    theirs = _timing_rounds.Contestant("theirs", "T", request={"contestant": "theirs"})
    workload.contestants.append(theirs)
    with pytest.raises(RuntimeError, match="TypeError"):
        _timing_rounds.play(workload, [1], 1, others=[rival])


def test_a_file_of_results_holds_one_version(tmp_path, capsys):
    with pytest.raises(SystemExit):
        compare.parse(["--before", "python"])
    assert "--results FILE" in capsys.readouterr().err
    assert compare.parse(["--before", "python", "--results", str(tmp_path / "other.csv")]).before


def test_another_version_makes_the_workloads_that_its_parameters_allow(monkeypatch):
    def refuses():
        raise TypeError("unexpected keyword")

    makers = [refuses, *_timing_contestants.makers()[:1]]
    monkeypatch.setattr(_timing_contestants, "makers", lambda: makers)
    known = makers[1]()
    request = {"contestant": "dpselect", "shape": known.shape, "label": "DPLogisticRegression"}
    _timing_server.workloads.cache_clear()
    kind, call = _timing_server.as_here({**request, "workload": [known.part, known.title]})
    assert kind == "labels" and callable(call)
    with pytest.raises(LookupError, match="linear SVC"):
        _timing_server.as_here({**request, "workload": ["small", "linear SVC"]})
    _timing_server.workloads.cache_clear()
