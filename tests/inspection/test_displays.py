import matplotlib
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from dpselect import (
    AccuracyFirstDisplay,
    AccuracyFirstSearchCV,
    DensityDisplay,
    DPHistogramDensity,
    DPLogisticRegression,
    DPRidge,
    StabilityGridSearchCV,
    StabilitySearchDisplay,
)
from dpselect.preprocessing import BoundedScaler, DPBoundsScaler

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(4000, 2))
    return X, (X[:, 0] > 0).astype(int)


def texts(display):
    ax = display.ax_
    found = [text.get_text() for text in (*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label)]
    if ax.get_legend():
        found += [text.get_text() for text in ax.get_legend().get_texts()]
    return " | ".join(found)


def search_over(grid, **parameters):
    return StabilityGridSearchCV(DPLogisticRegression(classes=[0, 1]), grid, **parameters)


def test_a_selection_shows_its_noise_and_its_choice(data):
    search = search_over({"data_norm": [0.5, 1.0, 2.0]}, strategy="stability", epsilon=2.0).fit(*data)
    display = StabilitySearchDisplay.from_search(search)
    assert display.plot() is display
    widths = np.asarray(display.points_.get_offsets())[:, 0]
    assert widths == pytest.approx(search.plan_.noise_scale)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.names
    chosen = display.ax_.get_yticklabels()[search.best_index_].get_color()
    assert chosen == "tab:orange" and "what a perfect model gains" in texts(display)
    lines = [line.get_xdata()[0] for line in display.ax_.lines]
    assert search.plan_.minimum_detectable_difference in lines and search.plan_.stake in lines


def test_a_plan_shows_what_is_left_out(data):
    grid = {"alpha": [0.0001, 0.01], "data_norm": [0.5, 1.0]}
    plan = search_over(grid, strategy="auto").plan(20_000, 10)
    display = StabilitySearchDisplay.from_plan(plan).plot()
    assert texts(display).count("not considered") == (~plan.considered).sum() == 2
    assert display.best_index is None


@pytest.mark.parametrize("strategy, says", [
    ("data_independent", "nothing is compared"), ("random", "nothing is compared"),
    ("budget_split", "minimum detectable difference"),
])  # fmt: skip
def test_strategies_with_and_without_noise(strategy, says):
    plan = search_over({"alpha": [0.1, 1.0]}, strategy=strategy).plan(20_000, 10)
    display = StabilitySearchDisplay.from_plan(plan).plot()
    assert says in texts(display)
    assert len(display.points_.get_offsets()) == (0 if says == "nothing is compared" else 2)


def test_many_candidates_are_numbered(data):
    plan = search_over({"alpha": np.geomspace(0.01, 1, 40)}, strategy="budget_split").plan(20_000, 10)
    assert StabilitySearchDisplay.from_plan(plan).names == [str(i) for i in range(40)]


def test_long_values_are_short():
    class Long:
        def __repr__(self):
            return "x" * 100

    plan = search_over({"alpha": [0.123456789, 1.0]}, strategy="random").plan(20_000, 10)
    display = StabilitySearchDisplay.from_plan(plan)
    assert display.names == ["alpha=0.1235", "alpha=1.0"]
    display.plan = type(plan)(**{**vars(plan), "params": ({"scoring": Long()}, {})})
    assert display.names == ["scoring=" + "x" * 21 + "...", "the only candidate"]


def test_a_search_that_is_not_private_has_no_noise(data):
    search = search_over({"alpha": [0.1]}, epsilon=float("inf")).fit(*data)
    with pytest.raises(ValueError, match="epsilon=inf"):
        StabilitySearchDisplay.from_search(search)


METHODS = [
    ("certified", "excess_risk"),
    ("above_threshold", "excess_risk"),
    ("predict_verify", "excess_risk"),
    ("predict_verify", "risk"),
    ("doubling", "excess_risk"),
    ("doubling", "clipped_squared_error"),
]


@pytest.mark.parametrize("n_steps", [0, 2])
@pytest.mark.parametrize("method, criterion", METHODS)
def test_a_path_shows_what_was_released(method, criterion, n_steps):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    steps = [DPBoundsScaler(0.25) for _ in range(n_steps)]
    search = AccuracyFirstSearchCV(
        make_pipeline(*steps, DPRidge(alpha=0.1, perturbation="output", target_range=(-1, 1))),
        {"dpridge__epsilon": np.geomspace(0.01, 50, 60)},
        target=0.1 if criterion == "excess_risk" else 0.2,
        method=method,
        criterion=criterion,
        on_failure="last",
    ).fit(X, X[:, 0])
    display = AccuracyFirstDisplay.from_search(search)
    assert display.plot() is display
    assert display.answers_.get_ydata().tolist() == list(search.path_.get("answer", []))
    assert f"epsilon {search.privacy_.epsilon:.3g}" in display.ax_.get_title()
    assert ("noisy answers" in texts(display)) == bool(len(display.answers))
    losses = dict(display.losses)
    assert losses.pop("on steps", 0.0) == 0.25 * n_steps
    disjoint = criterion == "clipped_squared_error"
    walk = max(losses.values()) if disjoint else sum(losses.values())
    assert 0.25 * n_steps + walk == pytest.approx(search.privacy_.epsilon)
    low, high = display.ax_.get_ylim()
    assert low <= display.target <= high


@pytest.mark.parametrize("n_columns", [1, 2])
def test_a_density_is_drawn(n_columns):
    X = np.random.default_rng(0).uniform(size=(2000, n_columns))
    density = DPHistogramDensity(bin_width=0.25, bounds=(0, 1)).fit(X)
    display = DensityDisplay.from_estimator(density)
    assert display.plot() is display and display.ax_.get_xlabel() == "column 0"
    if n_columns == 1:
        assert display.artist_.get_data().values.tolist() == density.density_.tolist()
    else:
        shown = np.asarray(display.artist_.get_array()).reshape(4, 4)
        assert shown == pytest.approx(density.density_.T)


def test_a_density_of_a_search_is_drawn():
    X = np.random.default_rng(0).random((200, 1))
    density = DPHistogramDensity(bounds=(0, 1), bin_width=0.25)
    search = StabilityGridSearchCV(density, {}).fit(X)
    shown = DensityDisplay.from_estimator(search).density
    assert np.array_equal(shown, search.best_estimator_.density_)
    with pytest.raises(TypeError, match="of a Pipeline give the last step"):
        DensityDisplay.from_estimator(make_pipeline(BoundedScaler((0, 1)), density).fit(X))


def test_a_density_of_three_columns_is_refused():
    X = np.random.default_rng(0).uniform(size=(100, 3))
    with pytest.raises(ValueError, match="3 columns"):
        DensityDisplay.from_estimator(DPHistogramDensity(bin_width=0.5, bounds=(0, 1)).fit(X))


def test_given_axes_are_used(data):
    figure, ax = matplotlib.pyplot.subplots()
    display = DensityDisplay.from_estimator(DPHistogramDensity(bounds=(0, 1)).fit(data[0][:, :1] + 0.5))
    assert display.plot(ax=ax).ax_ is ax and display.figure_ is figure
    assert len(matplotlib.pyplot.get_fignums()) == 1


def test_matplotlib_is_asked_for_by_name(monkeypatch, data):
    display = DensityDisplay.from_estimator(DPHistogramDensity(bounds=(0, 1)).fit(data[0][:, :1] + 0.5))
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"dpselect\[plot\]"):
        display.plot()
