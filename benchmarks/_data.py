"""Adult, MAGIC and KDD-99 for the benchmarks, with steps that rest on public knowledge alone.

No bound, category or transform below was computed from the records. They come from the
documentation of the data sets and from the field, and are wide round numbers; values
outside are clipped.

Lengths and sums of money have heavy tails. They pass through sign(x) log(1 + |x|) before
they are scaled, a fixed function of one value at a time.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import fetch_kddcup99, fetch_openml
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from dpselect.preprocessing import BoundedScaler

# Adult, column: (low, high). The census codes ages above 90 as 90 and kept persons over 16,
# hours above 99 as 99, and gains above 99,999 dollars as 99,999; schooling has 16 levels.
# The column fnlwgt is not used: it is a sampling weight, the number of people in the
# population that a record stands for, and says nothing of the person.
ADULT_LINEAR = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 100)}
ADULT_LOGARITHMIC = {"capital-gain": (0, 100_000), "capital-loss": (0, 5_000)}

# The lists of UCI's file adult.names, with "?" for an answer that is missing.
ADULT_CATEGORIES = {
    "workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
        "Without-pay", "Never-worked", "?",
    ),
    "education": (
        "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm",
        "Assoc-voc", "9th", "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate",
        "5th-6th", "Preschool",
    ),
    "marital-status": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
        "Married-spouse-absent", "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
        "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
        "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
        "Armed-Forces", "?",
    ),
    "relationship": (
        "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried",
    ),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "native-country": (
        "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
        "Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba",
        "Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico",
        "Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan",
        "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand",
        "Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
        "?",
    ),
}

# MAGIC, column: (low, high). Lengths are millimetres in a camera of about 600 mm radius: no
# axis of an image is longer than that, and no signed distance lies beyond it. fSize is a
# decimal logarithm of a number of photons, fConc and fConc1 are ratios, and fAlpha is an angle
# between 0 and 90 degrees. fDist, how far an image lies from the centre, spreads over the
# camera; the other lengths are mostly much shorter than it.
MAGIC_LINEAR = {
    "fSize": (1, 6), "fConc": (0, 1), "fConc1": (0, 1), "fAlpha": (0, 90), "fDist": (0, 600),
}
MAGIC_LOGARITHMIC = {
    "fLength": (0, 600), "fWidth": (0, 600), "fAsym": (-600, 600), "fM3Long": (-600, 600),
    "fM3Trans": (-600, 600),
}

# KDD-99, column: (low, high). For most columns 0 means that nothing happened; bounds that are
# symmetric about 0 leave it at 0. Rates are shares of connections and flags are 0 or 1, as
# UCI's task description says. Two columns are left out: num_outbound_cmds and is_host_login
# are known to be 0 in every record of the published file.
KDD_LINEAR = dict.fromkeys((
    "land", "logged_in", "root_shell", "su_attempted", "is_guest_login",
    "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate",
    "diff_srv_rate", "srv_diff_host_rate", "dst_host_same_srv_rate", "dst_host_diff_srv_rate",
    "dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate", "dst_host_serror_rate",
    "dst_host_srv_serror_rate", "dst_host_rerror_rate", "dst_host_srv_rerror_rate",
), (-1, 1))
# A connection lasts up to a day and carries up to a gigabyte either way. Of one kind of event
# within a connection there are up to a hundred; of other connections, a thousand.
KDD_LOGARITHMIC = {
    "duration": (-86_400, 86_400),
    **dict.fromkeys(("src_bytes", "dst_bytes"), (-(10**9), 10**9)),
    **dict.fromkeys((
        "wrong_fragment", "urgent", "hot", "num_failed_logins", "num_compromised", "num_root",
        "num_file_creations", "num_shells", "num_access_files",
    ), (-100, 100)),
    **dict.fromkeys(("count", "srv_count", "dst_host_count", "dst_host_srv_count"), (-1000, 1000)),
}

# The lists in the header of the NSL-KDD file KDDTrain+.arff.
KDD_CATEGORIES = {
    "protocol_type": ("tcp", "udp", "icmp"),
    "service": (
        "aol", "auth", "bgp", "courier", "csnet_ns", "ctf", "daytime", "discard", "domain",
        "domain_u", "echo", "eco_i", "ecr_i", "efs", "exec", "finger", "ftp", "ftp_data",
        "gopher", "harvest", "hostnames", "http", "http_2784", "http_443", "http_8001", "imap4",
        "IRC", "iso_tsap", "klogin", "kshell", "ldap", "link", "login", "mtp", "name",
        "netbios_dgm", "netbios_ns", "netbios_ssn", "netstat", "nnsp", "nntp", "ntp_u", "other",
        "pm_dump", "pop_2", "pop_3", "printer", "private", "red_i", "remote_job", "rje", "shell",
        "smtp", "sql_net", "ssh", "sunrpc", "supdup", "systat", "telnet", "tftp_u", "tim_i",
        "time", "urh_i", "urp_i", "uucp", "uucp_path", "vmnet", "whois", "X11", "Z39_50",
    ),
    "flag": ("OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"),
}


@dataclass(frozen=True)
class Data:
    """One data set and what is publicly known about it.

    Attributes
    ----------
    name : str
    X : DataFrame of shape (n_samples, n_columns)
        Records in the order of the source, which may be sorted by class or come in runs.
    y : ndarray of shape (n_samples,)
        Labels, 0 or 1.
    linear, logarithmic : dict of str to (float, float)
        Bounds of the numeric columns; those of the second kind have heavy tails.
    categories : dict of str to tuple of str
        All values of the other columns.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    linear: dict
    logarithmic: dict
    categories: dict

    @property
    def data_norm(self):
        """float : Norm of a row whose numeric columns are uniform between their bounds.

        A uniform column of [-1, 1] or [0, 1] adds 1/3 to the squared norm, and each
        categorical column adds 1. Longer rows are clipped by the model, as everywhere in dpselect.
        """
        return math.sqrt(
            (len(self.linear) + len(self.logarithmic)) / 3 + len(self.categories)
        )

    @property
    def example(self):
        """DataFrame : One made-up row, for ``StabilityGridSearchCV.plan``."""
        bounds = {**self.linear, **self.logarithmic}
        row = {name: [float(high)] for name, (_, high) in bounds.items()}
        row.update({name: [values[0]] for name, values in self.categories.items()})
        return pd.DataFrame(row)[list(self.X.columns)]

    def steps(self):
        """Return the transformer that brings the columns to a common scale.

        Returns
        -------
        ColumnTransformer
            Numeric columns in [-1, 1] and one column for each category, dense; every row
            is treated by itself.
        """
        parts = [
            ("linear", BoundedScaler(list(self.linear.values())), list(self.linear)),
            (
                "logarithmic",
                make_pipeline(
                    FunctionTransformer(signed_log, feature_names_out="one-to-one"),
                    BoundedScaler(signed_log(np.array(list(self.logarithmic.values())))),
                ),
                list(self.logarithmic),
            ),
        ]
        if self.categories:
            encoder = OneHotEncoder(
                categories=[list(values) for values in self.categories.values()],
                handle_unknown="ignore",
                sparse_output=False,
            )
            parts.append(("categories", encoder, list(self.categories)))
        return ColumnTransformer(parts, sparse_threshold=0.0)


def signed_log(X):
    """Return sign(x) log(1 + |x|), elementwise."""
    return np.sign(X) * np.log1p(np.abs(X))


def load(name, directory=None):
    """Load a data set from a directory, or download it.

    Parameters
    ----------
    name : {"adult", "magic", "kdd"}
        "kdd" is the 10 % file of KDD Cup 1999, with attacks as the positive class.
    directory : str or Path, default=None
        Holds ``adult.csv.gz``, ``magic.csv.gz`` and ``kddcup99_10percent.csv.gz``: UCI's
        files with a header line, whose last column is the label. None downloads the same
        records, by ``fetch_openml`` and ``fetch_kddcup99``.

    Returns
    -------
    Data
    """
    return {"adult": _adult, "magic": _magic, "kdd": _kdd}[name](directory)


def without_duplicates(data):
    """Return the data set without records that repeat an earlier one in every column.

    Which records go is decided by looking at them: privacy losses of models that are
    trained on the result are about the records that are left.
    """
    first = ~data.X.duplicated().to_numpy()
    name = f"{data.name} without duplicates"
    return replace(data, name=name, X=data.X[first], y=data.y[first])


def _adult(directory):
    frame = _read("adult", directory, "adult", 2, "income")
    numeric = [*ADULT_LINEAR, *ADULT_LOGARITHMIC]
    X = pd.concat(
        [
            frame[numeric].astype(np.float64),
            # OpenML has "not a number" where UCI has "?"
            frame[list(ADULT_CATEGORIES)].astype(object).fillna("?"),
        ],
        axis=1,
    )
    y = _labels(frame["label"], negative="<=50K", positive=">50K")
    return Data("Adult", X, y, ADULT_LINEAR, ADULT_LOGARITHMIC, ADULT_CATEGORIES)


def _magic(directory):
    frame = _read("magic", directory, "MagicTelescope", 1, "class")
    X = frame[[*MAGIC_LINEAR, *MAGIC_LOGARITHMIC]].astype(np.float64)
    y = _labels(frame["label"], negative="h", positive="g")
    return Data("MAGIC", X, y, MAGIC_LINEAR, MAGIC_LOGARITHMIC, {})


def _kdd(directory):
    if directory is not None:
        frame = _read("kddcup99_10percent", directory, None, None, "label")
    else:
        frame = fetch_kddcup99(percent10=True, as_frame=True).frame
        # scikit-learn has bytes where the file has text
        texts = [*KDD_CATEGORIES, "labels"]
        frame[texts] = frame[texts].map(lambda text: text.decode())
        frame = frame.rename(columns={"labels": "label"})
    numeric = [*KDD_LINEAR, *KDD_LOGARITHMIC]
    X = pd.concat(
        [frame[numeric].astype(np.float64), frame[list(KDD_CATEGORIES)].astype(object)], axis=1
    )
    # labels are "normal." and the names of 22 attacks
    y = (frame["label"].str.rstrip(".") != "normal").to_numpy().astype(int)
    return Data("KDD-99", X, y, KDD_LINEAR, KDD_LOGARITHMIC, KDD_CATEGORIES)


def _read(stem, directory, openml_name, version, target):
    """Return all columns as a DataFrame, the label in a column "label"."""
    if directory is not None:
        path = Path(directory) / f"{stem}.csv.gz"
        frame = pd.read_csv(path, keep_default_na=False, skipinitialspace=True)
        return frame.rename(columns={target: "label"})
    bunch = fetch_openml(openml_name, version=version, as_frame=True, parser="auto")
    # OpenML names MAGIC's columns "fLength:" and so on
    frame = bunch.data.rename(columns=lambda column: str(column).rstrip(":"))
    return frame.assign(label=np.asarray(bunch.target))


def _labels(values, negative, positive):
    """Return 0 and 1; UCI's own test file of Adult has a full stop after its labels."""
    values = pd.Series(values).astype(str).str.strip().str.rstrip(".")
    unknown = set(values) - {negative, positive}
    if unknown:
        raise ValueError(f"The labels should be {negative!r} and {positive!r}, not {unknown}.")
    return (values == positive).to_numpy().astype(int)
