"""What pictures of the gallery look like: no ground, and lines and letters in a grey for any page."""

import matplotlib
from matplotlib.colors import get_named_colors_mapping

GREY = "#808080"  # a contrast of 3.9 on white, and of 4.6 on the dark page
OF_TEXT = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
OF_LINES = ("axes.edgecolor", "legend.edgecolor")
# colours that scripts ask for and that one of the two pages would hide; light areas let it through
HIDDEN = {
    **dict.fromkeys(("k", "black", "0.3", "0.4", "0.6", "0.7", "0.8"), GREY),
    "0.9": GREY + "40",
}


def reset(gallery_conf, fname):
    """Set the style before each example, once sphinx-gallery has reset matplotlib."""
    names = get_named_colors_mapping()
    for name, colour in HIDDEN.items():
        names[name] = colour  # each empties matplotlib's cache, which update() does not
    matplotlib.rcParams.update(dict.fromkeys((*OF_TEXT, *OF_LINES), GREY))
    matplotlib.rcParams.update(
        {
            "savefig.transparent": True,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "legend.framealpha": 0,
        }
    )
