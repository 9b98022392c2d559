"""What pictures of the gallery look like: no ground, and lines and letters in a grey for any page."""

import matplotlib

GREY = "#808080"  # a contrast of 3.9 on white, and of 4.6 on the dark page
OF_TEXT = ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
OF_LINES = ("axes.edgecolor", "legend.edgecolor")


def reset(gallery_conf, fname):
    """Set the style before each example, once sphinx-gallery has reset matplotlib."""
    matplotlib.rcParams.update(dict.fromkeys((*OF_TEXT, *OF_LINES), GREY))
    matplotlib.rcParams.update(
        {
            "savefig.transparent": True,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "legend.framealpha": 0,
        }
    )
