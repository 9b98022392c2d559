"""scikit-learn's own tests of GridSearchCV, run on ours with epsilon=inf.

No test is copied: the files are taken from the installed scikit-learn, and
``swap_plugin`` puts our class in the place of GridSearchCV before they are
imported. Each file runs in a process of its own.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# Tests of scikit-learn that ours fails, each with the reason. Strict: a test
# not listed must pass, and a listed one must fail.
CALLBACKS = (
    "with epsilon=inf the work is done by a GridSearchCV inside; callbacks that are propagated, such as "
    "ProgressBar, are told of each of its fits, beside the steps of the search around it, so there are "
    "more tasks; others are told of these steps alone, by a copy without results."
)
EXPECTED_FAILURES = {
    "test_search_html_repr": (
        "GridSearchCV's diagram shows best_estimator_ once fitted, through a hook that is private "
        "to scikit-learn; ours shows `estimator`, as any third-party meta-estimator does."
    ),
    **{
        f"test_search_callbacks_{name}": CALLBACKS
        for name in (
            "no_propagation[search0-True]",
            "no_propagation[search0-False]",
            "propagation[search0-True]",
            "propagation[search0-False]",
            "receive_sample_weight",
            "receive_search_instance[search0]",
            "with_partial_fit_failures",
        )
    },
    "test_inverse_transform_Xt_deprecation[GridSearchCV]": (
        "before scikit-learn 1.7, inverse_transform also took Xt, which it said not to use; ours "
        "never did."
    ),
    "test_custom_run_search": (
        "compares all fitted attributes with those of a class without `privacy_`; ours states "
        "its loss, inf here too."
    ),
}
# file -> (selection, least number that must pass, least number that must have
# fitted our class)
RUNS = {
    # (those of RandomizedSearchCV meet nothing of ours)
    "sklearn.model_selection.tests.test_search": (
        "not random_search and not RandomizedSearchCV and not estimator1",
        100,
        70,
    ),
    "sklearn.tests.test_metaestimators": (None, 25, 5),
    "sklearn.tests.test_metaestimators_metadata_routing": ("[GridSearchCV]", 7, 6),
}


def run_swapped(module, selection, tmp_path):
    """Outcome, message and number of our fits of each test, by name."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    report = tmp_path / "report.xml"
    path = os.environ.get("PYTHONPATH")
    env = {
        **os.environ,
        # the folder of the plugin, and of our package should it not be installed
        "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1]), *([path] if path else [])]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    env.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "swap_plugin"]
    command += ["-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini")]
    command += [f"--junitxml={report}", "--pyargs", module]
    if selection:
        command += ["-k", selection]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    # 0: all passed, 1: some failed. Anything else: the run itself broke.
    assert done.returncode in (0, 1), done.stdout[-5000:] + done.stderr[-5000:]

    results = {}
    for case in ET.parse(report).iter("testcase"):
        assert case.get("name") not in results, "names must be unique in a file"
        outcome, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                outcome, message = child.tag, child.get("message", "")
        fits = sum(int(p.get("value")) for p in case.iter("property") if p.get("name") == "swapped_fits")
        results[case.get("name")] = (outcome, message, fits)
    return results


@pytest.mark.parametrize(
    "module",
    [
        module if module.endswith("routing") else pytest.param(module, marks=pytest.mark.slow)
        for module in RUNS
    ],
)
def test_sklearn_own_tests(module, tmp_path):
    selection, least_passed, least_fitted = RUNS[module]
    results = run_swapped(module, selection, tmp_path)

    failed = {
        name: message
        for name, (outcome, message, _) in results.items()
        if outcome in ("failure", "error")
    }
    listed = dict(EXPECTED_FAILURES) if module.endswith("test_search") else {}
    unlisted = {name: failed[name] for name in failed.keys() - listed.keys()}
    assert not unlisted, unlisted
    # (older versions of scikit-learn do not have all of the listed ones)
    assert not (listed.keys() & results.keys()) - failed.keys(), "listed, but did not fail"

    # A test may be skipped for want of a package, and for nothing else.
    for name, (outcome, message, _) in results.items():
        if outcome == "skipped":
            assert "not installed" in message or "SCIPY_ARRAY_API" in message, name

    passed = [name for name, result in results.items() if result[0] == "passed"]
    assert len(passed) >= least_passed
    # The swap has happened: our class, and not GridSearchCV, did the fitting.
    assert sum(results[name][2] > 0 for name in passed) >= least_fitted
