"""Privacy losses, the events they come from, and what several cost together."""

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
