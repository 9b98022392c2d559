from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn

from dpselect import DPHistogramDensity, DPLogisticRegression, PrivacyLoss, StabilityGridSearchCV


class Tags(HTMLParser):
    """Counts what was opened and not closed, and collects the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("input", "br", "link", "meta", "path", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    tags = Tags()
    tags.feed(html)
    return tags.open, " ".join(tags.text)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(500, 2))
    y = (X[:, 0] > 0).astype(int)
    search = StabilityGridSearchCV(
        DPLogisticRegression(classes=[0, 1]), {"data_norm": [0.5, 1.0]}, strategy="stability"
    )
    return search.fit(X, y)


def test_notebooks_show_the_loss_beside_the_diagram(fitted):
    bundle = fitted._repr_mimebundle_()
    for html in (fitted._repr_html_(), bundle["text/html"]):
        left_open, text = read(html[html.index("<details style='margin") :])
        assert left_open == [] and "choice among 2 candidates" in text
        assert "epsilon = 1" in text and html.count("<details style='margin") == 1
        assert "sk-top-container" in html
    assert bundle["text/plain"] == repr(fitted)


def test_nothing_is_shown_before_a_fit():
    model = DPLogisticRegression()
    assert "Privacy loss" not in model._repr_html_()
    assert "Privacy loss" not in model._repr_mimebundle_()["text/html"]


def test_text_display_stays_text():
    with sklearn.config_context(display="text"):
        assert not hasattr(DPHistogramDensity(bounds=(0, 1)), "_repr_html_")
        assert "text/html" not in DPHistogramDensity(bounds=(0, 1))._repr_mimebundle_()


def test_labels_are_escaped_and_seeds_are_told():
    html = PrivacyLoss(0.5, 1e-6, label="<script>alert(1)</script>", seeded=True)._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "whoever knows the seed" in html and "1e-06" in html


def test_a_loss_has_its_own_html():
    loss = PrivacyLoss.sequential([PrivacyLoss(0.5, label="one"), PrivacyLoss(0.25, label="two")])
    left_open, text = read(loss._repr_html_())
    assert left_open == [] and "one" in text and "two" in text
