"""The model that leaves a search: trained once, with noise that is kept nowhere."""

from ..records.records import split_groups, split_weights


def release_state(stream, seeded, *path):
    """Return the random state for the noise of a model that is released; the path tells models apart.

    None is noise from the operating system, independent of all other noise and kept nowhere; a stored
    seed would let anyone remove it.
    """
    return stream.child("release", *path).for_release() if seeded else None


def fit_for_release(model, epsilon, state, X, y):
    """Fit a private model, which is changed, with an epsilon and a state of :func:`release_state`."""
    # the one place where an epsilon is written: into what will be released with it
    y, groups = split_groups(y)
    y, weight = split_weights(y)
    given = {"sample_weight": weight, "groups": groups}
    given = {name: value for name, value in given.items() if value is not None}
    model.set_params(epsilon=float(epsilon), random_state=state).fit(X, y, **given)
    # a key that stayed with the model would draw the same noise again
    return model.set_params(random_state=None)
