"""The spellings of categories: which texts and numbers in a table mean which one."""

import unicodedata
from collections import Counter
from functools import lru_cache

from .table_cells import GAP, MISSING_TEXTS, as_number


@lru_cache(maxsize=1024)
def known_spellings(categories, missing_values):
    """Return the index of each text, and of each number, that is a category; GAP of a gap.

    Parameters
    ----------
    categories, missing_values : tuple of str, float, int or bool

    Returns
    -------
    (dict, dict)
    """
    texts, numbers = meanings(categories)
    for known, gaps in zip((texts, numbers), meanings(missing_values)):
        known += [(gap, GAP) for gap, _ in gaps]
    listed, found = dict(texts), {}
    for text, i in texts:
        for spelt in _spelt(text):
            found.setdefault(spelt, set()).add(i)
    # a spelling of two categories is neither's, and that of a gap is no category unless listed
    others = {
        text: places.pop()
        for text, places in found.items()
        if len(places) == 1 and text.lower() not in MISSING_TEXTS
    }
    return others | listed, dict(numbers)


def _spelt(text):
    """Yield a text in other cases and Unicode forms: those that whole columns are stored in.

    They are few, so that a model in another format can list them.
    """
    for case in (str, str.lower, str.upper, str.title, str.capitalize):
        for form in ("NFC", "NFD"):
            yield unicodedata.normalize(form, case(text))


def meanings(categories):
    """Return pairs (text, index) and (number, index) of categories; a text may also be a number.

    Of texts that read as one number, "7" and the code "07", it is the one without zeros before it.
    """
    texts = [(value.strip(), i) for i, value in enumerate(categories) if isinstance(value, str)]
    numbers = [(as_number(value), i) for i, value in enumerate(categories)]
    numbers = [(number, i) for number, i in numbers if number is not None and number == number]
    times = Counter(number for number, _ in numbers)
    return texts, [
        (number, i) for number, i in numbers if times[number] == 1 or not _is_code(categories[i])
    ]


def _is_code(category):
    text = category.strip() if isinstance(category, str) else ""
    return len(text) > 1 and text.isdigit() and text[0] == "0"
