"""Tables and verdicts of ``selection_strategies.py``."""

import math

import numpy as np
import pandas as pd
from private_tuning import markdown
from scipy import stats

PRIVATE = (
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
)
CONTROLS, RANDOMS = ("control", "control T"), ("random", "random T")
WITHIN = 0.1  # share of the best's excess that auto may add to it
CLOSE_TO_CONTROL, CLOSE_EPSILON = 0.003, 0.5
ALIKE = 0.01  # difference of AUC that counts as equal, as read from a figure


def interval(values):
    """Return mean and half the length of the 95 % interval; nan for a single value."""
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return (values.mean() if len(values) else math.nan), math.nan
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return float(values.mean()), float(half)


def shown(values, form="{:.4f} ±{:.4f}"):
    """Return mean and half-width as text."""
    mean, half = interval(values)
    return "" if math.isnan(mean) else form.format(mean, half).replace("±nan", "")


def by_round(results, epsilon, metric):
    """Return one column for each method and one line for each round."""
    cell = results[results["epsilon"] == epsilon]
    return cell.pivot(index="round", columns="method", values=metric)


def stronger(rounds, methods):
    """Return the method with the least mean error."""
    return min(methods, key=lambda method: rounds[method].mean())


def verdict(contest, plans, results):
    """Judge auto in every cell.

    Parameters
    ----------
    contest : Contest
    plans : dict
        Its plans.
    results : DataFrame
        Its rounds.

    Returns
    -------
    DataFrame
        One row for each epsilon.
    """
    lines = []
    for epsilon in contest.epsilons:
        rounds = by_round(results, epsilon, "MSE")
        control, random = stronger(rounds, CONTROLS), stronger(rounds, RANDOMS)
        # random stopping plays in some rounds only: differences are within rounds
        excess = rounds.sub(rounds[control], axis=0)
        # one round says little
        judged = [method for method in PRIVATE if excess[method].count() >= min(2, len(excess))]
        best = min(judged, key=lambda method: excess[method].mean())
        taken = plans["auto", epsilon].strategy
        others = [method for method in judged if method != taken]
        other = min(others, key=lambda method: excess[method].mean())
        behind, over_random = rounds["auto"] - rounds[best], rounds["auto"] - rounds[random]
        allowed = max(WITHIN * abs(excess[best].mean()), stats.sem(behind.dropna()))
        lines.append(
            {
                "data": contest.data,
                "title": contest.title,
                "epsilon": epsilon,
                "taken": taken,
                "control": control,
                "auto excess": shown(excess["auto"], "{:+.5f} ±{:.5f}"),
                "best": best,
                "best excess": shown(excess[best], "{:+.5f} ±{:.5f}"),
                "other": other,
                "other excess": shown(excess[other], "{:+.5f} ±{:.5f}"),
                "within": behind.mean() <= allowed,
                "own": best == taken,
                "ahead of others": excess["auto"].mean() <= excess[other].mean(),
                "random": random,
                "auto - random": shown(over_random, "{:+.4f} ±{:.4f}"),
                "worse than random": over_random.mean() > stats.sem(over_random),
            }
        )
    return pd.DataFrame(lines)


def score_table(contest, results, metric, form="{:.4f} ±{:.4f}"):
    """Return one line for each epsilon, one column for each method."""
    lines = []
    for epsilon in contest.epsilons:
        rounds = by_round(results, epsilon, metric)
        lines.append([f"{epsilon:g}", *(shown(rounds[name], form) for name in contest.methods)])
    return markdown([f"epsilon ({metric})", *contest.methods], lines)


def contest_report(contest, plans, results, cells):
    """Return the section of one data set and grid of alpha."""
    yes = {True: "yes", False: "NO"}
    lines = [
        [
            f"{cell['epsilon']:g}",
            cell["taken"],
            cell["control"],
            cell["auto excess"],
            cell["best"],
            cell["best excess"],
            cell["other"],
            cell["other excess"],
            yes[bool(cell["within"])],
            cell["random"],
            cell["auto - random"],
            "YES" if cell["worse than random"] else "no",
        ]
        for _, cell in cells.iterrows()
    ]
    header = [
        "epsilon",
        "auto takes",
        "Control is",
        "auto - Control",
        "best single",
        "best - Control",
        "best that auto does not take",
        "that - Control",
        "auto within",
        "Random is",
        "auto - Random",
        "worse than Random",
    ]
    sections = [
        f"## {contest.data}, {contest.title}",
        (
            f"{len(contest.y)} records, {contest.X.shape[1]} columns; {contest.rounds} rounds, of "
            f"which random stopping played {contest.stopping_rounds}. Base rate: MSE "
            f"{results['base rate'].mean():.4f}."
        ),
        "Mean squared error of the probability (Brier score), less is better:",
        score_table(contest, results, "MSE"),
        "AUC, greater is better:",
        score_table(contest, results, "AUC"),
        "Index of the chosen alpha; 1 is the least:",
        score_table(contest, results, "chosen", "{:.1f} ±{:.1f}"),
        (
            f'Verdict by MSE. "within": auto is behind the best single strategy by at most '
            f"{WITHIN:.0%} of the best's excess over Control, or by its standard error; \"worse than "
            'Random": by more than the standard error. Standard errors are of differences in a round.'
        ),
        markdown(header, lines),
    ]
    if contest.title == "10 alphas":
        sections += [
            "What CV13 say of their figures, and what was found here:",
            claims_table(contest, results),
        ]
    return "\n\n".join(sections)


def claims_table(contest, results):
    """Return one line for each epsilon, one column for each claim of CV13 in words."""
    lines = []
    rivals = ["budget_split count", "data_split", "random T"]
    magic = contest.data == "MAGIC"
    for epsilon in contest.epsilons:
        mse, auc = (by_round(results, epsilon, metric) for metric in ("MSE", "AUC"))
        rival = stronger(mse, rivals)
        split = max(rivals[:2], key=lambda method: auc[method].mean())
        beside_random = auc["CV13"] - auc["random T"]
        claim = "below" if not magic else "above" if epsilon > 1 else "not above"
        lines.append(
            [
                f"{epsilon:g}",
                tested(mse[rival] - mse["CV13"], "above") + f" ({rival})",
                tested(auc["CV13"] - auc[split], "above") + f" ({split})",
                tested(beside_random, claim),
                "" if magic else tested(auc["random T"] - auc["control T"], "equal"),
            ]
        )
    return markdown(
        [
            "epsilon",
            "MSE: Stability better than every private alternative",
            "AUC: Stability above alphaSplit and dataSplit",
            "AUC: Stability above Random for epsilon > 1 only"
            if magic
            else "AUC: Stability below Random",
            "" if magic else f"AUC: Random equal to Control (to {ALIKE:g})",
        ],
        lines,
    )


def tested(differences, claim):
    """Return whether a claim about the mean of `differences` holds, and the mean."""
    mean, half = interval(differences)
    low, high = mean - half, mean + half
    words = {
        "above": "agree" if low > 0 else "DISAGREE" if high < 0 else "open",
        "below": "agree" if high < 0 else "DISAGREE" if low > 0 else "open",
        "not above": "DISAGREE" if low > 0 else "agree",
        "equal": "agree" if abs(mean) <= ALIKE else "DISAGREE",
    }
    return f"{words[claim]} {mean:+.4f} ±{half:.4f}"


def count_report(cells, parts):
    """Return how often each verdict holds, and how soon methods come close to Control."""
    lines = []
    for title, group in [*cells.groupby("title", sort=False), ("all", cells)]:
        count = len(group)
        lines.append(
            [
                title,
                *(
                    f"{int(column.sum())} of {count}"
                    for column in (
                        group["within"],
                        group["own"],
                        group["ahead of others"],
                        group["worse than random"],
                    )
                ),
            ]
        )
    sections = [
        "## Counts over all cells of part A",
        markdown(
            [
                "",
                "auto within 10 % or the standard error of the best single strategy",
                "that strategy is the one that auto takes",
                "auto at least as good as every strategy that it does not take",
                "auto worse than Random",
            ],
            lines,
        ),
    ]
    close = {}
    for contest, _, results in parts:
        if contest.title != "10 alphas":
            continue
        for epsilon in contest.epsilons:
            rounds = by_round(results, epsilon, "MSE")
            least = rounds[list(CONTROLS)].mean().min()
            for method in ("optimal_risk", "CV13"):
                close[contest.data, method, epsilon] = rounds[method].mean() - least
    said = []
    for data in dict.fromkeys(data for data, _, _ in close):
        reached = {
            method: [
                e
                for (d, m, e), gap in close.items()
                if (d, m) == (data, method) and gap <= CLOSE_TO_CONTROL
            ]
            for method in ("optimal_risk", "CV13")
        }
        gap = close[data, "optimal_risk", CLOSE_EPSILON]
        first = {method: f"{found[0]:g}" if found else "none" for method, found in reached.items()}
        said.append(
            f"{data}, 10 alphas: at epsilon = {CLOSE_EPSILON:g} the MSE of optimal_risk is "
            f"{gap:+.4f} from Control's ({'within' if gap <= CLOSE_TO_CONTROL else 'NOT within'} "
            f"{CLOSE_TO_CONTROL:g}). First epsilon of those tried within {CLOSE_TO_CONTROL:g}: "
            f"optimal_risk {first['optimal_risk']}, CV13 {first['CV13']}."
        )
    return "\n\n".join([*sections, *said])


def time_report(results):
    """Return how long the rounds of each contest took."""
    rounds = results.drop_duplicates(["data", "title", "round"])
    lines = [
        [data, title, len(group), f"{group['seconds'].mean():.1f}", f"{group['seconds'].sum():.0f}"]
        for (data, title), group in rounds.groupby(["data", "title"], sort=False)
    ]
    lines.append(["all", "", len(rounds), "", f"{rounds['seconds'].sum():.0f}"])
    header = ["data", "contest", "rounds", "processor seconds a round", "processor seconds"]
    return "## Where the time goes\n\n" + markdown(header, lines)


def maps_report(parts):
    """Return the tables of part B and what they come to."""
    names = ("auto", "linear", "random map", "CV13", "stability", "budget_split", "random_stopping")
    scores, regrets, gains = [], [], []
    for contest, plans, results in parts:
        maps = [name for name in contest.methods if name.startswith("map ")]
        for epsilon in contest.epsilons:
            rounds = by_round(results, epsilon, "MSE")
            # the chance of the noise is averaged out: all maps have been trained
            rounds = rounds.assign(
                **{"linear": rounds["map 0"], "random map": rounds[maps].mean(axis=1)}
            )
            best = stronger(rounds, maps)
            label = [contest.data, f"{epsilon:g}"]
            scores.append(
                [
                    *label,
                    plans["auto", epsilon].strategy,
                    f"{shown(rounds[best])} ({best})",
                    *(shown(rounds[name]) for name in names),
                ]
            )
            regrets.append(
                {
                    "data": contest.data,
                    "epsilon": epsilon,
                    **{name: (rounds[name] - rounds[best]).mean() for name in names},
                }
            )
            gains.append(
                {"data": contest.data, "epsilon": epsilon, "gain": rounds["CV13"] - rounds["auto"]}
            )
    regrets = pd.DataFrame(regrets)
    lines = [
        [line["data"], f"{line['epsilon']:g}", *(f"{1e4 * line[name]:.0f}" for name in names)]
        for _, line in regrets.iterrows()
    ]
    lines += [
        [f"{kind} of all", "", *(f"{1e4 * getattr(regrets[name], kind)():.0f}" for name in names)]
        for kind in ("mean", "max")
    ]
    ahead = [line["gain"].mean() > 0 for line in gains]
    clear = [interval(line["gain"])[0] - interval(line["gain"])[1] > 0 for line in gains]
    header = ["data", "epsilon"]
    gain_lines = [
        [line["data"], f"{line['epsilon']:g}", shown(line["gain"], "{:+.4f} ±{:.4f}")] for line in gains
    ]
    rounds = ", ".join(f"{contest.data} {contest.rounds}" for contest, _, _ in parts)
    means = regrets.assign(gain=[line["gain"].mean() for line in gains]).groupby("data")["gain"]
    by_data = ", ".join(
        f"{data} {gain.mean():.4f} ({gain.min():.4f} to {gain.max():.4f})" for data, gain in means
    )
    return "\n\n".join(
        [
            (
                f"Rounds: {rounds}. Map 0 is linear; then come widths .5, 1 and 2, each with 40, 100 "
                'and 200 features. "best map" is the best in hindsight, on the test records.'
            ),
            "Mean squared error:",
            markdown([*header, "auto takes", "best map", *names], scores),
            "Regret against the best map, times 10,000:",
            markdown([*header, *names], lines),
            (
                f"auto: mean regret {regrets['auto'].mean():.4f}, worst {regrets['auto'].max():.4f} "
                f"over {len(regrets)} cells. Better than CV13's method in {sum(ahead)} of them, beyond "
                f"the 95 % interval in {sum(clear)}. By how much, on average over epsilon: {by_data}."
            ),
            markdown([*header, "MSE: CV13 - auto"], gain_lines),
        ]
    )


def small_report(parts):
    """Return the table of part C: what plan() said, and what happened."""
    lines, said = [], {}
    for contest, plans, results in parts:
        for epsilon in contest.epsilons:
            plan = plans["auto", epsilon]
            rounds = by_round(results, epsilon, "MSE")
            base_rate = results.drop_duplicates("round")["base rate"]
            warned = any(message.startswith("n epsilon / d") for message in plan.messages)
            for message in plan.messages:
                said.setdefault(message, f"{contest.data}, {contest.title}, epsilon {epsilon:g}")
            lines.append(
                [
                    contest.data,
                    contest.n_records,
                    f"{epsilon:g}",
                    plan.strategy,
                    "yes" if plan.selection_epsilon > 0 else "no",
                    "yes" if warned else "no",
                    shown(rounds["auto"]),
                    shown(base_rate),
                    shown(rounds["optimal_risk made to"]),
                ]
            )
    header = [
        "data",
        "records",
        "epsilon",
        "auto takes",
        "selects",
        "plan() warns",
        "auto (MSE)",
        "base rate (MSE)",
        "optimal_risk made to select (MSE)",
    ]
    rounds = parts[0][0].rounds
    return "\n\n".join(
        [
            f"{rounds} rounds, each with records of its own; the feature maps of part B.",
            markdown(header, lines),
            "What plan() said, each message where it first came up:",
            "\n".join(f"- {where}: {message}" for message, where in said.items()),
        ]
    )
