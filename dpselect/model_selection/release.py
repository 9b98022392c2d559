"""The model that leaves a search: trained once, with noise that is kept nowhere."""

def release_state(stream, seeded, *path):
    """Return the random state for the noise of a model that is released.

    Parameters
    ----------
    stream : InnerStream
        Of the search.
    seeded : bool
        Whether the search was given a random state.
    *path : str or int
        Tells the models of one search apart.

    Returns
    -------
    InnerStream or None
        None is noise from the operating system, independent of all other noise and kept
        nowhere; a stored seed would let anyone remove it.
    """
    return stream.child("release", *path).for_release() if seeded else None


def fit_for_release(model, epsilon, state, X, y):
    """Fit a model with a privacy loss and a random state of its own.

    Parameters
    ----------
    model : estimator
        A private model; it is changed.
    epsilon : float
    state : InnerStream or None
        From :func:`release_state`.
    X, y
        Its records.

    Returns
    -------
    estimator
        The same object, fitted.
    """
    # the one place where an epsilon is written: into what will be released with it
    model.set_params(epsilon=float(epsilon), random_state=state).fit(X, y)
    # a key that stayed with the model would draw the same noise again
    return model.set_params(random_state=None)
