"""Privacy losses, the events that cause them, and their composition."""

from .events import ChoiceEvent, Event, GaussianEvent, ObjectiveEvent
from .totals import composed_epsilon, to_dp_event

__all__ = [
    "ChoiceEvent",
    "Event",
    "GaussianEvent",
    "ObjectiveEvent",
    "composed_epsilon",
    "to_dp_event",
]
