"""Privacy losses: the stated guarantee of releases, and their composition.

A :class:`PrivacyLoss` is an immutable statement. It is either one release or a
composition of others, so the total is always computed from what was done and
never kept in a counter that a copied estimator or a worker process could miss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from html import escape
from typing import Any, Self

import numpy as np

from ..utils.validation import check_choice, check_flag, check_number
from .events import Event, event_of

KINDS = ("differential privacy", "ex-post")


class Adjacency(StrEnum):
    """The relation between neighbouring data sets; losses for different ones do not add up.

    Wherever an adjacency is asked for, its text serves as well.

    Examples
    --------
    >>> from dpselect import Adjacency, PrivacyLoss
    >>> PrivacyLoss(1.0).adjacency is Adjacency.REPLACE_RECORD
    True
    >>> print(Adjacency.REPLACE_RECORD)
    replace one record
    """

    REPLACE_RECORD = "replace one record"
    """One record is replaced by any other; the number of records is public."""
    REPLACE_PERSON = "replace all rows of one person"
    """All rows of one person are replaced, by any number of others; the number of persons is public."""
    REPLACE_HOLDOUT_RECORD = "replace one holdout record"
    """Likewise for the holdout records; training records are not protected."""
    REPLACE_HOLDOUT_PERSON = "replace all rows of one holdout person"
    """Likewise, for persons with any number of holdout rows."""
    ADD_OR_REMOVE_RECORD = "add or remove one record"
    """One record comes or goes. No release of this library; for a ledger of others' releases."""

    @property
    def unit(self) -> str:
        """str : The unit of privacy: "record" or "person"."""
        return "person" if self in _OF_PERSONS else "record"

    def __repr__(self) -> str:
        return str.__repr__(self)


_OF_PERSONS = (Adjacency.REPLACE_PERSON, Adjacency.REPLACE_HOLDOUT_PERSON)
PERSONS_INSTEAD = {
    Adjacency.REPLACE_RECORD: Adjacency.REPLACE_PERSON,
    Adjacency.REPLACE_HOLDOUT_RECORD: Adjacency.REPLACE_HOLDOUT_PERSON,
}


@dataclass(frozen=True)
class PrivacyLoss:
    """The privacy loss of everything that one fit released.

    Parameters
    ----------
    epsilon : float
        Bound on the log-ratio of the probabilities of any outcome on two
        neighbouring data sets; 0 or more, ``inf`` when nothing is promised.
    delta : float, default=0.0
        Probability, in [0, 1], with which the bound may fail.
    kind : {"differential privacy", "ex-post"}, default="differential privacy"
        ``"ex-post"`` bounds the loss of the outcome that came out. It is not
        differential privacy for an epsilon that is fixed in advance.
    adjacency : Adjacency or str, default="replace one record"
        The adjacency: how neighbouring data sets differ. The number of records is
        public.
    label : str, default="release"
        What was released, in words.
    seeded : bool, default=False
        Whether noise came from a seed. Whoever knows the seed can remove it,
        and the loss to them is infinite.
    composition : {"release", "sequential", "parallel", "joint"}, default="release"
        How `epsilon` and `delta` follow from `parts`.
    parts : tuple of PrivacyLoss, default=()
        The losses that were composed; empty for a single release.
    event : Event, default=None
        Mechanism of a single release, if it is known, for tighter totals than by `epsilon` and `delta`;
        fixed before the release by public numbers.

    Raises
    ------
    ValueError
        If `epsilon` is negative or NaN, `delta` outside [0, 1], `kind` unknown,
        or a composition does not follow from its parts.
    TypeError
        If a number, text or loss is something else.

    See Also
    --------
    PrivacyLoss.sequential : The loss of several releases about the same records.
    PrivacyLoss.parallel : The loss of releases about disjoint blocks of records.

    Notes
    -----
    Sequential and parallel composition: Dwork and Roth, *The Algorithmic
    Foundations of Differential Privacy*, 2014, theorem 3.16, and McSherry,
    *Privacy Integrated Queries*, 2009, theorem 4.

    Examples
    --------
    >>> from dpselect import PrivacyLoss
    >>> choice = PrivacyLoss(0.5, label="choice of alpha")
    >>> model = PrivacyLoss(0.5, label="coefficients")
    >>> total = PrivacyLoss.sequential([choice, model])
    >>> total.epsilon
    1.0
    >>> print(total)
    (epsilon = 1, delta = 0) differential privacy, adjacency: replace one record
      sum of
        epsilon 0.5: choice of alpha
        epsilon 0.5: coefficients
    """

    epsilon: float
    delta: float = 0.0
    kind: str = KINDS[0]
    adjacency: Adjacency | str = Adjacency.REPLACE_RECORD
    label: str = "release"
    seeded: bool = False
    composition: str = "release"
    parts: tuple[PrivacyLoss, ...] = ()
    event: Event | None = None

    def __post_init__(self):
        ranges = (
            ("epsilon", math.inf, "it is no privacy loss", "give a number of 0 or more"),
            ("delta", 1.0, "it is not a probability", "give a number between 0 and 1"),
        )
        for name, high, why, instead in ranges:
            number = check_number(
                name,
                getattr(self, name),
                low_included=True,
                high=high,
                high_included=True,
                why=why,
                instead=instead,
            )
            # Python numbers, not numpy's, for JSON
            object.__setattr__(self, name, number)
        check_choice("kind", self.kind, KINDS, why="what it promises is unknown")
        compose = {"release": None, "sequential": _total, "parallel": max, "joint": _total}
        check_choice("composition", self.composition, tuple(compose), why="its total is unknown")
        check_flag("seeded", self.seeded, why="noise came from a seed, or did not")
        check_choice(
            "adjacency", self.adjacency, tuple(Adjacency), why="which records it protects is unknown"
        )
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        if not isinstance(self.label, str):
            raise TypeError(
                f"label must be a text, not a {type(self.label).__name__}, because it is read by "
                "people; say it in words."
            )
        _check_losses("parts", self.parts)
        if not isinstance(self.event, Event | None):
            raise TypeError(
                f"event must be an Event, not a {type(self.event).__name__}, because no total follows "
                "from it; write None, or for instance GaussianEvent(0.2)."
            )
        if self.event is not None and (self.parts or self.kind != KINDS[0]):
            raise ValueError(
                "event says how all outcomes of one release compose, which a composition and an ex-post "
                "loss do not; leave it out."
            )
        if bool(self.parts) != (self.composition != "release"):
            raise ValueError(
                "parts and composition disagree; use PrivacyLoss.sequential or PrivacyLoss.parallel."
            )
        if self.parts:
            total = compose[self.composition]
            expected = (
                total([part.epsilon for part in self.parts]),
                min(1.0, total([part.delta for part in self.parts])),
            )
            weaker = (
                any(part.seeded for part in self.parts) > self.seeded
                or any(part.kind == KINDS[1] for part in self.parts) > (self.kind == KINDS[1])
                or any(part.adjacency != self.adjacency for part in self.parts)
            )
            if weaker:
                raise ValueError(
                    "kind, adjacency or seeded promise more than the parts do; "
                    "use PrivacyLoss.sequential or PrivacyLoss.parallel."
                )
            less = self.composition == "joint" and self.epsilon <= expected[0]
            if (expected[0] if less else self.epsilon, self.delta) != expected:
                raise ValueError(
                    "epsilon and delta do not follow from the parts; "
                    "use PrivacyLoss.sequential or PrivacyLoss.parallel."
                )

    def __setstate__(self, state):
        # skops stores an adjacency as text
        self.__dict__.update(state, adjacency=Adjacency(state["adjacency"]))

    @classmethod
    def sequential(
        cls,
        losses: Iterable[PrivacyLoss],
        label: str = "sequential composition",
    ) -> Self:
        """Compose releases about the same records: epsilons and deltas add up.

        Parameters
        ----------
        losses : iterable of PrivacyLoss
            At least one loss, all for the same adjacency.
        label : str
            What the releases were made for.

        Returns
        -------
        PrivacyLoss
            The total; its kind is "ex-post" as soon as one part's is.
        """
        return cls._compose(losses, "sequential", _total, label)

    @classmethod
    def parallel(cls, losses: Iterable[PrivacyLoss], label: str = "parallel composition") -> Self:
        """Compose releases about disjoint blocks of records: the largest loss counts.

        The blocks must be fixed by public record numbers. Blocks that are formed
        by looking at the records' values (one for each diagnosis, say) are not
        disjoint in this sense: a replaced record can leave one block and enter
        another, and the losses add up as in :meth:`sequential`.

        Parameters
        ----------
        losses : iterable of PrivacyLoss
            At least one loss, all for the same adjacency.
        label : str
            What the releases were made for.

        Returns
        -------
        PrivacyLoss
            The total.
        """
        return cls._compose(losses, "parallel", max, label)

    @classmethod
    def joint(
        cls,
        losses: Iterable[PrivacyLoss],
        epsilon: float,
        label: str = "joint composition",
    ) -> Self:
        """Compose releases about the same records, of which a proof bounds the loss below the sum.

        Parameters
        ----------
        losses : iterable of PrivacyLoss
            At least one loss, all for the same adjacency.
        epsilon : float
            Of all of them together, with the sum of their deltas; at most the sum of their epsilons.
        label : str
            What the releases were made for.

        Returns
        -------
        PrivacyLoss
            The total.

        Raises
        ------
        ValueError
            If `epsilon` is more than their sum.
        """
        return cls._compose(losses, "joint", _total, label, epsilon)

    @classmethod
    def _compose(cls, losses, composition, total, label, epsilon=None):
        parts = tuple(losses) if np.iterable(losses) else losses
        _check_losses("losses", parts)
        if not parts:
            raise ValueError("losses is empty, so there is nothing to compose; give at least one.")
        adjacencies = {part.adjacency for part in parts}
        if len(adjacencies) > 1:
            raise ValueError(
                f"losses are for different adjacencies {sorted(adjacencies)} and do not "
                "compose; state them for one adjacency first, those of records for persons by "
                "loss.for_persons(rows_per_person)."
            )
        return cls(
            epsilon=total([part.epsilon for part in parts]) if epsilon is None else epsilon,
            delta=min(1.0, total([part.delta for part in parts])),
            kind=KINDS[max(KINDS.index(part.kind) for part in parts)],
            adjacency=parts[0].adjacency,
            label=label,
            seeded=any(part.seeded for part in parts),
            composition=composition,
            parts=parts,
        )

    def for_persons(self, rows_per_person: int) -> PrivacyLoss:
        """Convert a loss per record to one per person with several records (group privacy).

        Group privacy: a person's rows are replaced one after the other. **It is about persons whose
        numbers of rows are public**, since the release takes the number of records as public; a fit with
        `groups` needs no such word, and no largest number.

        Parameters
        ----------
        rows_per_person : int
            C, 1 or more: nobody has more rows. That is your word.

        Returns
        -------
        PrivacyLoss
            With C times epsilon, and ``1 + exp(epsilon) + ... + exp((C - 1) epsilon)`` times delta.

        Raises
        ------
        ValueError
            If the loss is not about one replaced record, or ex-post with a delta, of which no such rule
            is known; or `rows_per_person` is out of range.

        References
        ----------
        Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, theorem 2.2; with a
        delta, Vadhan, *The Complexity of Differential Privacy*, 2017, lemma 2.2.

        Examples
        --------
        >>> from dpselect import PrivacyLoss
        >>> print(PrivacyLoss(0.5, label="coefficients").for_persons(4))
        (epsilon = 2, delta = 0) differential privacy, adjacency: replace all rows of one person
          epsilon 2: coefficients (4 times the loss of a row; numbers of rows are public)
        """
        C = check_number(
            "rows_per_person",
            rows_per_person,
            integer=True,
            why="it counts rows",
            instead="write the largest number of rows that anyone has",
        )
        if self.adjacency not in PERSONS_INSTEAD:
            raise ValueError(
                f"a loss for the adjacency {self.adjacency!r} is not about one replaced record, so it "
                "does not add up over the rows of a person; state it as it is."
            )
        if self.delta and self.kind == KINDS[1]:
            raise ValueError(
                "an ex-post loss with a delta is not known to add up over the rows of a person; spend "
                "it from a ledger for records."
            )
        epsilon = rounded_up(C * Fraction(self.epsilon)) if self.epsilon < math.inf else math.inf
        return type(self)(
            epsilon,
            _group_delta(self.epsilon, self.delta, C),
            self.kind,
            PERSONS_INSTEAD[Adjacency(self.adjacency)],
            f"{self.label} ({C} times the loss of a row; numbers of rows are public)",
            self.seeded,
        )

    @property
    def releases(self) -> tuple[PrivacyLoss, ...]:
        """tuple of PrivacyLoss : The single releases that this loss is composed of."""
        if not self.parts:
            return (self,)
        return tuple(release for part in self.parts for release in part.releases)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain numbers and strings, ready for JSON.

        Returns
        -------
        dict
            The attributes by their names; `parts` is a list of such dicts, and `event` one, or None.
        """
        names = ("epsilon", "delta", "kind", "adjacency", "label", "seeded", "composition")
        return {
            **{name: getattr(self, name) for name in names},
            "parts": [part.to_dict() for part in self.parts],
            "event": None if self.event is None else self.event.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild the loss from the values that `to_dict` returned.

        Parameters
        ----------
        values : dict

        Returns
        -------
        PrivacyLoss

        Raises
        ------
        ValueError, TypeError, KeyError
            If there is no such loss.
        """
        event = values["event"]
        return cls(
            **{
                **values,
                "parts": tuple(cls.from_dict(part) for part in values["parts"]),
                "event": None if event is None else event_of(event),
            }
        )

    def outline(self, depth: int = 0) -> Iterator[tuple[int, PrivacyLoss, str]]:
        """Iterate over the lines of the statement.

        Parameters
        ----------
        depth : int, default=0
            Of the first line.

        Yields
        ------
        depth, loss, text : int, PrivacyLoss and str
            A single release with its label, or how the deeper lines that follow are put together.
        """
        members = self._members()
        if not members:
            yield depth, self, self.label
        elif len(members) == 1:
            yield from members[0].outline(depth)
        else:
            largest = "largest of" if len(members) > 2 else "larger of"
            said = {
                "sequential": "sum of",
                "parallel": largest,
                "joint": "together, less than the sum of",
            }
            yield depth, self, said[self.composition]
            for member in members:
                yield from member.outline(depth + 1)

    def _repr_html_(self):
        """Return the statement for notebooks; its summary is the total."""
        rows = "".join(
            "<tr>"
            f"<td style='text-align:right'>{loss.epsilon:.6g}</td>"
            f"<td style='text-align:right'>{loss.delta:.6g}</td>"
            f"<td style='text-align:left;padding-left:{1 + depth}em'>{escape(text)}</td></tr>"
            for depth, loss, text in self.outline()
        )
        return (
            f"<details style='margin:0.5em 0'><summary><b>Privacy loss:</b> {escape(self._head())}"
            "</summary><table><thead><tr><th>epsilon</th><th>delta</th>"
            f"<th style='text-align:left'>of</th></tr></thead><tbody>{rows}</tbody></table></details>"
        )

    def _members(self):
        """Return the parts with redundant levels removed: a part alone, a sum within a sum."""
        members = []
        for part in self.parts:
            while len(part.parts) == 1:
                (part,) = part.parts
            members += part._members() if part.composition == self.composition else [part]
        return members

    def _head(self):
        head = (
            f"(epsilon = {self.epsilon:.6g}, delta = {self.delta:.6g}) {self.kind}, "
            f"adjacency: {self.adjacency}"
        )
        if self.epsilon == math.inf:
            head = "not private (epsilon = inf)"
        if self.seeded:
            head += "; the noise was seeded: whoever knows the seed can remove it"
        return head

    def __str__(self):
        lines, outline = [self._head()], list(self.outline())
        for depth, loss, text in outline:
            delta = f", delta {loss.delta:.6g}" if loss.delta else ""
            amount = f"epsilon {loss.epsilon:.6g}{delta}: "
            if depth == 0 and len(outline) > 1:
                amount = ""  # the amount is the total, which is printed in the line above
            lines.append("  " * (depth + 1) + amount + text)
        return "\n".join(lines)


def remainder(total, parts):
    """Return the epsilon that is left after some parts; with it they add up to no more, rounded once."""
    if total == math.inf:
        return total
    taken = sum(map(Fraction, parts))
    remaining = float(Fraction(total) - taken)
    while float(taken + Fraction(remaining)) > total:
        remaining = math.nextafter(remaining, 0.0)
    return remaining


def rounded_up(number):
    """Return the least double that is no less than a Fraction; inf beyond the largest one."""
    try:
        found = float(number)
    except OverflowError:
        return math.inf
    return found if Fraction(found) >= number else math.nextafter(found, math.inf)


def _group_delta(epsilon, delta, size):
    if delta == 0 or size == 1:
        return delta
    if not math.log(delta) + (size - 1) * epsilon < 0:
        return 1.0
    # rounding error of a sum of positive numbers
    total = delta * math.fsum(math.exp(i * epsilon) for i in range(size))
    return min(1.0, total * (1 + 2.0**-48))


def _total(numbers):
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf


def _check_losses(name, losses):
    if not isinstance(losses, tuple) or not all(isinstance(loss, PrivacyLoss) for loss in losses):
        raise TypeError(
            f"{name} must hold PrivacyLoss objects and nothing else, because other losses are not "
            "known to compose; write for instance [PrivacyLoss(0.5), PrivacyLoss(0.5)]."
        )
