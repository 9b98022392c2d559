"""Mechanisms: functions of numbers that release something private."""

from .selection import exponential_mechanism, exponential_noise_scales, noisy_argmax

__all__ = ["exponential_mechanism", "exponential_noise_scales", "noisy_argmax"]
