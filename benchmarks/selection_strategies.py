"""Every strategy of private model selection, side by side.

Run ``python benchmarks/selection_strategies.py --data DIR``, where DIR holds ``adult.csv.gz``,
``magic.csv.gz`` and ``kddcup99_10percent.csv.gz``; without ``--data`` they are downloaded.
``--output`` writes the report, ``--figures`` draws figures 1 and 2 of the source, and
``--check`` does nothing but compare this benchmark with whole searches by
StabilityGridSearchCV. ``--quick`` plays few rounds.

Part A is the experiment of Chaudhuri and Vinterbo (2013), "CV13": Adult and MAGIC, logistic
regression, ten values of alpha. In round i of ten, fold i of ten is the test set, fold i + 1
the validation set V, and the other eight are the training set T; then the records are shuffled
anew: ten times on MAGIC, as in the source, and five times on Adult, to save time. Their grid is
equidistant from 0.001 to 1 for rows of norm 1 (rows here are longer by a factor c, and the
same problem has c^2 times these alphas), and continues as an equidistant grid of 50 and of 200
values over the same range, played in fewer rounds. The methods:

- auto: strategy="auto" of the library, which decides by public numbers;
- data_independent, optimal_risk: these strategies, which read no validation records. They are given
  T
  and V alike, the nine folds that everyone is given;
- stability: the library's, with the Brier score, a scale for each candidate, the realised
  noise and a head start for the public rule's alpha; T trains and V judges, and the winner is
  trained on T and V;
- CV13: Algorithm 2 as published: the ramp, beta_1 = 2 / lambda_min and beta_2 = 1 of theorem 4,
  half of epsilon for each step, the winner trained on T. For the ramp beta_2 is its range, so
  that the slips in the proof of theorem 4, which are in the other term of its minimum, do not
  matter here. The constant from which the intercept is learned counts as part of a row;
- budget_split count, data_split: as in CV13, by the number of errors; budget_split: by the Brier
  score; budget_split zCDP: with shares for delta = 1e-6;
- random_stopping: the library's, by the Brier score. It trains ten times k models, and
  plays in the first rounds only;
- random: a candidate by chance, trained on T and V; random T: on T, as in CV13;
- control: not private. Of the models on T with the whole epsilon, the best on V by its exact
  Brier score. "control T" is this model, as in CV13; "control" trains its candidate again, on
  T and V. Where one yardstick is asked for, it is the better of the two in that cell.

Part B lets features vary: linear ones and nine maps of random Fourier features of three widths
and three sizes, drawn anew in each round, each with alpha="auto"; Adult, MAGIC and 40,000
records of KDD-99. Part C is Part B on few records, and shows what plan() said of it.

Intervals are 95 %, by Student's t over rounds. Rounds share records, so they are somewhat too
short, as they are in the source. Within a round methods have common random numbers.
"""

import argparse
import math
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from _data import load
from _selection_figures import figures
from _selection_methods import DELTA, plans, play
from _selection_report import (
    contest_report,
    count_report,
    maps_report,
    small_report,
    time_report,
    verdict,
)
from _selection_rounds import SIZES, WIDTHS, Contest, alpha_grid, map_grid
from joblib import Parallel, delayed
from private_tuning import CV13_ALPHAS, markdown, mean_and_error, versions
from sklearn.metrics import brier_score_loss
from sklearn.pipeline import Pipeline

from dpselect import DPLogisticRegression, PrivacyLeakWarning
from dpselect.noise import root_stream
from dpselect.preprocessing import NormClipper

EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0)
MAP_EPSILONS = (0.3, 0.5, 1.0, 2.0, 3.0, 5.0)
SMALL_EPSILONS = (0.5, 1.0, 3.0)
SMALL_SIZES = (500, 1000, 2000)
SUBSAMPLE_SEED = 20131
KDD_RECORDS, SMALL_POOL = 40_000, 10_000
# rounds, and those in which random stopping plays, by data set and number of alphas
ALPHA_ROUNDS = {
    ("adult", 200): (2, 1),
    ("adult", 50): (4, 2),
    ("adult", 10): (50, 20),
    ("magic", 200): (5, 2),
    ("magic", 50): (20, 10),
    ("magic", 10): (100, 40),
}
MAP_ROUNDS = {"kdd": (3, 3), "adult": (3, 3), "magic": (5, 5)}
SMALL_ROUNDS = 20
ALPHA_METHODS = (
    "auto",
    "data_independent",
    "optimal_risk",
    "stability",
    "CV13",
    "budget_split count",
    "budget_split",
    "budget_split zCDP",
    "data_split",
    "random_stopping",
    "random",
    "random T",
    "control",
    "control T",
)
MAPS = tuple(f"map {i}" for i in range(1 + len(WIDTHS) * len(SIZES)))
MAP_METHODS = ("auto", "CV13", "stability", "budget_split", "random_stopping", *MAPS)


def prepare(data, n_records=None):
    """Return rows of norm at most `data.data_norm` and labels, perhaps of a public subsample."""
    records = np.arange(len(data.y))
    if n_records is not None:
        records = np.random.default_rng(SUBSAMPLE_SEED).permutation(records)[:n_records]
    rows = data.steps().fit_transform(data.X.iloc[records])
    return NormClipper(bound=data.data_norm).fit_transform(rows), data.y[records]


def alpha_contest(data, k, rounds, stopping_rounds):
    """Return the contest over `k` values of alpha; at k = 10 the grid is CV13's."""
    alphas = CV13_ALPHAS if k == len(CV13_ALPHAS) else np.linspace(*CV13_ALPHAS[::9], k)
    model = DPLogisticRegression(data_norm=data.data_norm, classes=[0, 1])
    grid = partial(alpha_grid, [float(data.data_norm**2 * alpha) for alpha in alphas])
    return Contest(
        data.name,
        f"{k} alphas",
        *prepare(data),
        model,
        grid,
        EPSILONS,
        ALPHA_METHODS,
        rounds,
        stopping_rounds,
    )


def map_contest(data, rounds, stopping_rounds):
    """Return the contest over feature maps."""
    X, y = prepare(data, KDD_RECORDS if data.name == "KDD-99" else None)
    model = DPLogisticRegression(classes=[0, 1])
    return Contest(
        data.name,
        "maps",
        X / data.data_norm,
        y,
        Pipeline([("map", "passthrough"), ("model", model)]),
        partial(map_grid, data.data_norm),
        MAP_EPSILONS,
        MAP_METHODS,
        rounds,
        stopping_rounds,
    )


def small_contests(data, rounds):
    """Return the contests over feature maps on few records."""
    X, y = prepare(data, SMALL_POOL)
    whole = replace(
        map_contest(data, rounds, 0),
        X=X / data.data_norm,
        y=y,
        epsilons=SMALL_EPSILONS,
        methods=("auto", "optimal_risk made to"),
    )
    return [replace(whole, title=f"{n} records", n_records=n) for n in SMALL_SIZES]


def contests(options):
    """Return all contests, the longest rounds first."""
    sets = {name: load(name, options.data) for name in ("kdd", "adult", "magic")}
    most = 2 if options.quick else options.rounds or math.inf

    def limited(rounds):
        return [min(number, most) for number in rounds]

    found = [map_contest(sets[name], *limited(rounds)) for name, rounds in MAP_ROUNDS.items()]
    found += [
        alpha_contest(sets[name], k, *limited(rounds)) for (name, k), rounds in ALPHA_ROUNDS.items()
    ]
    for name in ("adult", "magic"):
        found += small_contests(sets[name], *limited([SMALL_ROUNDS]))
    return found


def compare(options, directory):
    """Play all rounds, and draw the figures.

    Parameters
    ----------
    options : Namespace
    directory : Path or None
        For the figures.

    Returns
    -------
    list of str
        Sections of the report.
    """
    played = contests(options)
    with Parallel(n_jobs=options.jobs, batch_size=1) as parallel:
        planned = parallel(delayed(plans)(contest) for contest in played)
        rows = parallel(
            delayed(play)(contest, plan, number)
            for contest, plan in zip(played, planned)
            for number in range(contest.rounds)
        )
    results = pd.DataFrame([row for part in rows for row in part])
    own = {
        (contest.data, contest.title): results[
            (results["data"] == contest.data) & (results["title"] == contest.title)
        ]
        for contest in played
    }
    parts = {"alphas": [], "maps": [], "records": []}
    for contest, plan in zip(played, planned):
        parts[contest.title.split()[-1]].append((contest, plan, own[contest.data, contest.title]))
    parts["alphas"].sort(key=lambda part: (part[0].data, len(part[0].grid(0)["alpha"])))
    if directory:
        figures([part for part in parts["alphas"] if part[0].title == "10 alphas"], directory)
    cells = [verdict(*part) for part in parts["alphas"]]
    return [
        "# Strategies of private model selection",
        "# Part A: alpha",
        *[contest_report(*part, cell) for part, cell in zip(parts["alphas"], cells)],
        count_report(pd.concat(cells), parts["alphas"]),
        "# Part B: feature maps",
        maps_report(parts["maps"]),
        "# Part C: few records",
        small_report(parts["records"]),
        time_report(results),
    ]


def check(options, epsilon=1.0):
    """Return a table of whole searches by the library beside this benchmark's, on MAGIC.

    Both have the same splits, and noise of their own.
    """
    rounds = 2 if options.quick else options.rounds or 60
    contest = replace(
        alpha_contest(load("magic", options.data), 10, rounds, rounds), epsilons=(epsilon,)
    )
    options_of = {
        "budget_split count": {"strategy": "budget_split", "scoring": "accuracy"},
        "budget_split zCDP": {"strategy": "budget_split", "delta": DELTA},
        "data_split": {"scoring": "accuracy"},
        "control T": {"strategy": "control"},
        "stability, 5 folds": {"strategy": "stability", "cv": 5},
    }
    names = (
        "auto",
        "data_independent",
        "optimal_risk",
        "stability",
        "stability, 5 folds",
        "budget_split count",
        "budget_split",
        "budget_split zCDP",
        "data_split",
        "random_stopping",
        "random",
        "control T",
    )
    planned = plans(contest)
    with Parallel(n_jobs=options.jobs) as parallel:
        ours = parallel(delayed(play)(contest, planned, number) for number in range(rounds))
        whole = parallel(
            delayed(search_once)(
                contest, number, epsilon, **{"strategy": name, **options_of.get(name, {})}
            )
            for name in names
            for number in range(rounds)
        )
    ours = pd.DataFrame([row for part in ours for row in part])
    lines = []
    for name, theirs in zip(names, np.reshape(whole, (len(names), rounds))):
        here = ours.loc[ours["method"] == name.split(",")[0], "MSE"].to_numpy()
        lines.append([name, *map(mean_and_error, (theirs, here, here - theirs))])
    header = ["method", "whole search", "this benchmark", "difference"]
    return "\n\n".join(
        [
            f"# Check: MAGIC, 10 alphas, epsilon = {epsilon:g}, {rounds} rounds",
            (
                'MSE and its standard error, paired by round. "5 folds" is the default cv, beside the '
                "benchmark's single split."
            ),
            markdown(header, lines),
        ]
    )


def search_once(contest, number, epsilon, strategy, **options):
    """Return the mean squared error of one whole search on a round's test records."""
    train, validation, test = contest.parts(number)
    records = np.concatenate([train, validation])
    noise = root_stream(SUBSAMPLE_SEED).child(strategy, str(options), number)
    search = contest.search(strategy, epsilon, number, random_state=noise, **options)
    with warnings.catch_warnings():
        # strategy="control" is no release here
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        search.fit(contest.X[records], contest.y[records])
    return brier_score_loss(contest.y[test], search.predict_proba(contest.X[test])[:, 1])


def parse(arguments=None):
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="directory of the .csv.gz files")
    parser.add_argument("--rounds", type=int, help="at most this many rounds of each contest")
    parser.add_argument("--quick", action="store_true", help="2 rounds of each contest")
    parser.add_argument("--check", action="store_true", help="compare with whole searches, no more")
    parser.add_argument("--jobs", type=int, default=2, help="processes that share rounds")
    parser.add_argument("--output", metavar="FILE", help="write the report here too")
    parser.add_argument("--figures", metavar="DIR", help="draw the figures here")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the benchmark, print its report and draw its figures."""
    options = parse(arguments)
    start = time.perf_counter()
    directory = None
    if options.figures:
        directory = Path(options.figures)
        directory.mkdir(parents=True, exist_ok=True)
    sections = [check(options)] if options.check else compare(options, directory)
    taken = time.perf_counter() - start
    sections.append(f"{versions()}. Took {taken:.0f} s with {options.jobs} jobs.")
    text = "\n\n".join(sections) + "\n"
    print(text)
    if options.output:
        Path(options.output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
