"""Messages of the library in the words of the command: its options in place of parameters in Python."""

import re

# parameter -> option of which it is the value
OPTIONS = {
    "alpha": "--alpha",
    "base_rate": "--base-rate",
    "class_share": "--base-rate",
    "class_weight": "--class-weight",
    "columns": "--columns",
    "delta": "--delta",
    "epsilon": "--epsilon",
    "evaluation": "--evaluation",
    "expansion": "--expansion",
    "max_epsilon": "--epsilon",
    "max_sample_weight": "--max-weight",
    "n_samples": "--records",
    "pairs": "--pairs",
    "ranges": "--learn-ranges",
    "target": "--excess-risk",
}
# what is more than a name and a value; the way to choose is no option
PHRASES = {
    r', strategy="\w+": epsilon': ": epsilon",
    r'strategy="auto" takes (\w+): ': r"Chosen by \1: ",
    r"n_samples >= (\d+)": r"\1 {unit} or more",
    r"n_samples=(\d+)": r"\1 {unit}",
    r"plan for n_samples \* w / (\S+) records": r"plan for w / \1 times as many {unit}",
    r"a larger grid, target, max_epsilon or n_samples would be": (
        "a larger --excess-risk or --epsilon, or more {unit}, would be"
    ),
    r"about epsilon=(\S+), and can cost epsilon=": r"about epsilon \1, and can cost epsilon ",
    r"it costs epsilon=": "it costs epsilon ",
    r"for epsilon=": "for epsilon ",
    r"what it did cost is in privacy_": "what it did cost, the fit says",
    r"\(perturbation='objective'\)": "",
    r"; write perturbation='output', or a method without a path[^.]*\.": ".",
    r"compare a grid with encoder__pairs, or leave them out": "leave --pairs out if in doubt",
    r"ranges=('auto'|\"auto\")": "--learn-ranges",
    r"(delta=\S+) of the model": r"\1",
}
NAMED = re.compile(rf"\b({'|'.join(OPTIONS)})=('[^']*'|\"[^\"]*\"|[\w.+-]*\w)?")
# not the name of a column, which has quotation marks
BARE = re.compile(r"(?<!['\w])(max_sample_weight|n_samples|class_share|base_rate)(?!['\w])")


def in_options(text: str, unit: str = "records") -> str:
    """Return a message with the names of options where it has those of parameters.

    Parameters
    ----------
    text : str
        Of the library, for who writes Python.
    unit : {"records", "persons"}
        What is counted.

    Returns
    -------
    str

    Examples
    --------
    >>> from dpselect._command_line.option_words import in_options
    >>> in_options("columns='first' reads 3 of 9; use n_samples >= 400, or leave some out (columns=).")
    '--columns first reads 3 of 9; use 400 records or more, or leave some out (--columns).'
    """
    for phrase, words in PHRASES.items():
        text = re.sub(phrase, words.replace("{unit}", unit), text)
    text = NAMED.sub(_option, text)
    return BARE.sub(lambda found: OPTIONS[found[1]], text)


def _option(found):
    value = (found[2] or "").strip("'\"")
    return f"{OPTIONS[found[1]]} {value}".rstrip()
