"""
Classify texts: words to columns, without a vocabulary of the records
=====================================================================

A vocabulary that is learned from letters shows which words occur in them: a name, a rare disease. So
a private model hashes words to columns, or takes a list of words that is public. As texts that every
reader has, we take the first sentences of functions in the source of scikit-learn and of matplotlib,
and tell which library a sentence is from.
"""

# %%
# Some thousand sentences
# -----------------------
#
# They stand for what patients write. One in five is set aside.

# sphinx_gallery_thumbnail_path = "images/thumbnails/text.png"

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import make_pipeline

from dpselect import DPLogisticRegression, evaluate, privacy_of


def sentences(library):
    folder, first = Path(library.__file__).parent, re.compile(r':\n *"""\s*([A-Z][^"]{20,300}?\.)\s')
    sources = (path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
    return list(dict.fromkeys(sentence for source in sources for sentence in first.findall(source)))


learning, drawing = sentences(sklearn), sentences(matplotlib)
texts = np.array(learning + drawing, dtype=object)
is_drawing = np.repeat([0, 1], [len(learning), len(drawing)])
held_out = np.arange(len(texts)) % 5 == 0
print(len(texts), "sentences, such as:", texts[3], sep="\n")

# %%
# Hashing
# -------
#
# ``HashingVectorizer`` maps each word to one of 256 columns and makes rows of length 1, whatever the
# texts are. It learns nothing. 256 columns are many for a private model: here a small ``delta``
# is worth having, as Gaussian noise grows less with their number.


def hashing(epsilon, delta):
    vectorizer = HashingVectorizer(n_features=256, alternate_sign=False, stop_words="english")
    classifier = DPLogisticRegression(epsilon, delta=delta, classes=[0, 1], data_norm=1.0)
    return make_pipeline(vectorizer, classifier)


model = hashing(epsilon=3.0, delta=1e-6).fit(texts[~held_out], is_drawing[~held_out])
print(privacy_of(model))

# %%
# A vocabulary from knowledge
# ---------------------------
#
# Whoever knows the trade knows words that tell. Two dozen of them are enough, if they were not looked up
# in the records. A sentence counts a word once; ``data_norm=2.0`` serves up to four of the words, and
# longer rows are clipped.

words = [
    "fit",
    "estimator",
    "model",
    "samples",
    "regression",
    "classifier",
    "kernel",
    "cluster",
    "score",
    "feature",
    "predict",
    "matrix",
    "plot",
    "axes",
    "axis",
    "figure",
    "color",
    "draw",
    "tick",
    "image",
    "line",
    "artist",
    "legend",
    "text",
]


def by_words(epsilon, delta):
    vectorizer = CountVectorizer(vocabulary=words, binary=True)
    classifier = DPLogisticRegression(epsilon, delta=delta, classes=[0, 1], data_norm=2.0)
    return make_pipeline(vectorizer, classifier)


# %%
# Which serves when?
# ------------------
#
# The share of sentences, set aside, whose library was told. (Nothing is sensitive here, so each may be
# fitted often.)

epsilons = [0.1, 0.3, 1, 3, 10]
ways = {
    "24 words": (by_words, 0.0),
    "24 words, delta": (by_words, 1e-6),
    "256 hashes": (hashing, 0.0),
    "256 hashes, delta": (hashing, 1e-6),
}


def accuracy(make, epsilon, delta):
    fitted = make(epsilon, delta).fit(texts[~held_out], is_drawing[~held_out])
    return np.mean(fitted.predict(texts[held_out]) == is_drawing[held_out])


figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, (make, delta)), colour in zip(ways.items(), ("C1", "C1", "C0", "C0")):
    scores = [np.mean([accuracy(make, epsilon, delta) for _ in range(3)]) for epsilon in epsilons]
    ax.plot(epsilons, scores, "s--" if delta else "o-", color=colour, label=name)
larger = max(is_drawing.mean(), 1 - is_drawing.mean())
ax.axhline(larger, color="0.6", lw=1, label="always the larger library")
ax.set(xscale="log", xlabel=r"privacy loss $\varepsilon$", ylabel="accuracy, held out")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# Without a delta a few words that are known to tell are ahead of all words as long as epsilon is small:
# noise grows with the number of columns. They cannot get far, as many sentences have none of them. The
# delta helps the 256 columns a lot and the 24 little. What is released in the end: the model, and how
# good it is on texts that were set aside.

print(evaluate(model, texts[held_out], is_drawing[held_out], epsilon=3.0))
