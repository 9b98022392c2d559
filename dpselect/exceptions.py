"""Warnings and errors that name what would break, or has weakened, a guarantee."""


class PrivacyLeakWarning(UserWarning):
    """Something that is not covered by the stated privacy loss was taken from the data.

    The message says what was taken and which argument makes it public knowledge
    instead. It never contains the data.
    """


class SeededNoiseWarning(UserWarning):
    """A result was released with noise that anyone who knows the seed can remove."""


class CertificateError(ValueError):
    """No stability certificate exists for an estimator together with a score."""
