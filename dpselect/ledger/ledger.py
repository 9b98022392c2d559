"""A privacy budget for one data set, kept on disk and shared by processes.

What the loss of a release is, is not known before its noise is drawn, and a process can die in
between. So a loss is *reserved* before any noise is drawn, and *committed* when the release is
made. A reservation that was never committed counts as spent: its release may have come out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Literal, Self

from ..accounting.events import Event
from ..accounting.filters import COMPOSITIONS, law_of
from ..accounting.privacy_loss import Adjacency, PrivacyLoss
from ..accounting.totals import composed_epsilon
from ..exceptions import BudgetExceededError
from ..utils.type_aliases import PathLike
from ..utils.validation import check_choice, check_number
from .admission import account, check_text, check_unit, in_unit
from .amounts import exact
from .budget_file import new_file, snapshot, transaction
from .entry import LedgerEntry, unlabelled_losses
from .export import read_json, write_json
from .open_blocks import Exit, entered
from .record_parts import WHOLE, check_parts
from .reservation import Reservation
from .spending import Opening


class PrivacyLedger:
    """The privacy budget of one data set, on disk, shared by processes.

    Estimators and searches spend from the ledger that is their parameter `ledger`, or from the one
    that is open: ``with ledger: model.fit(X, y)``. What is left bounds what they may release: too
    little raises :class:`~dpselect.BudgetExceededError` before any data is touched.

    Read more in :doc:`/ledger`.

    Parameters
    ----------
    path : str or path-like
        The file. If there is none and `epsilon` is given, it is made. An empty file is refused: it may
        be a ledger that was truncated.
    epsilon : float, default=None
        Budget, greater than 0; None opens a ledger that exists.
    delta : float, default=0.0
        Budget, in [0, 1).
    adjacency : Adjacency or str, default="replace one record"
        The adjacency that all losses must be for; that of
        :class:`~dpselect.Thresholdout` is "replace one holdout record". Other than that only if
        `epsilon` is given.
    composition : {"sum", "renyi"}, default=None
        How losses add up; None is "sum", or that of the file. With "renyi", which needs a `delta`, Renyi
        divergences add up instead: several times as many releases with Gaussian noise fit, and fewer
        without. Other than None only if `epsilon` is given.
    rows_per_person : int, default=None
        Of a ledger for persons: your word that nobody has more rows, and that how many everyone has is
        public. Losses about records are then counted so many times, as
        :meth:`PrivacyLoss.for_persons` says, and not refused.
    parts : sequence of str, default=None
        Names of public parts of the data set, for :meth:`part`; None is no parts, or those of the file.
        Other than None only if `epsilon` is given.
    label : str, default=""
        What the releases are for, such as ``"readmission model, March"``; it stands before the label
        of each entry that is made by this object. Public.
    user : str, default=None
        Who makes them; None is the name of the account. Public.

    Raises
    ------
    FileNotFoundError
        If there is no file, and no budget to make one with.
    ValueError
        If the file is no ledger, or one with another budget: what was promised to the people in
        the records does not change. If `rows_per_person` is given for a ledger of records.

    Notes
    -----
    Losses add up: basic sequential composition, also of releases that were planned after others
    were seen. (With ``composition="renyi"``, the Renyi filter of Feldman and Zrnic, *Individual Privacy
    Accounting via a Renyi Filter*, NeurIPS 2021, which holds for these, too; an ex-post loss frees
    nothing there.) A loss that came out smaller than its reservation ("ex-post") frees the rest: the
    amounts are a privacy filter in the sense of Rogers, Roth, Ullman and Vadhan, *Privacy Odometers
    and Filters*, NIPS 2016. Beside its path the object holds `label`, `user` and
    `rows_per_person` alone, so copies, pickles and forks of a ledger are the same ledger.

    ``with ledger`` reaches fits in other threads and processes, joblib's and Dask's too: what is
    pickled inside, and what is built inside by a thread or a process that descends from this one. Wait
    for them inside. Other processes know of it by its path: their entries lack `label`, and have the
    name of the account; a ledger for persons refuses losses about records there.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from dpselect import DPHistogramDensity, PrivacyLedger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(os.path.join(folder.name, "patients.ledger"), epsilon=1.0)
    >>> ages = np.random.default_rng(0).uniform(size=(1000, 1))  # stands for your records
    >>> with ledger:
    ...     density = DPHistogramDensity(0.5, bounds=(0, 1)).fit(ages)
    >>> ledger.spend(0.25, label="a table of counts, by hand")
    >>> ledger.remaining()
    (0.25, 0.0)
    >>> print(ledger)
    epsilon 0.75 of 1 and delta 0 of 0 are spent
      0.5: DPHistogramDensity: histogram with laplace noise
      0.25: a table of counts, by hand
    >>> folder.cleanup()
    """

    # the part that its releases are about, or all
    part_name = WHOLE

    def __init__(
        self,
        path: PathLike,
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        adjacency: Adjacency | str | None = None,
        composition: Literal["sum", "renyi"] | None = None,
        rows_per_person: int | None = None,
        parts: Sequence[str] | None = None,
        label: str = "",
        user: str | None = None,
    ) -> None:
        self.path, self.rows_per_person = str(Path(path).absolute()), rows_per_person
        if rows_per_person is not None:
            PrivacyLoss(0.0).for_persons(rows_per_person)  # for its check of the number of rows
        self.label, self.user = label, user
        for name, text in (("label", label), ("user", "" if user is None else user)):
            check_text(name, text)
        if epsilon is None:
            if not Path(self.path).exists():
                raise FileNotFoundError(
                    f"There is no ledger at {self.path}, and without epsilon none can be made; give "
                    "the budget, as in PrivacyLedger(path, epsilon=1.0)."
                )
            with snapshot(self.path) as file:
                check_unit(rows_per_person, file.adjacency)
                file.check_sums()
            return
        check_number("epsilon", epsilon, why="it is the budget", instead="write 1.0 for instance")
        check_number(
            "delta",
            delta,
            low_included=True,
            high=1.0,
            why="it is a probability",
            instead="write 0.0 for pure privacy",
        )
        adjacency = Adjacency.REPLACE_RECORD if adjacency is None else adjacency
        check_choice(
            "adjacency", adjacency, tuple(Adjacency), why="which records it protects is unknown"
        )
        check_unit(rows_per_person, adjacency)
        composition = "sum" if composition is None else composition
        check_choice("composition", composition, COMPOSITIONS, why="how losses add up is unknown")
        if composition == "renyi" and not delta / 2:
            raise ValueError(
                f'composition="renyi" was given with delta={delta!r}, and a divergence says nothing '
                'without a delta; write for instance delta=1e-6, or composition="sum".'
            )
        law, names = law_of(composition, epsilon, delta), check_parts(parts)
        with suppress(FileExistsError), new_file(self.path, epsilon, delta, adjacency, law, names):
            return
        with snapshot(self.path) as file:
            given = exact(epsilon), exact(delta), adjacency, composition
            if (*file.budget, file.adjacency, file.law.name) != given:
                raise ValueError(
                    f"epsilon={epsilon!r}, delta={delta!r}, adjacency={adjacency!r} and "
                    f"composition={composition!r} are not those of the ledger at {self.path} "
                    f"(epsilon={float(file.budget[0])}, delta={float(file.budget[1])}, "
                    f"{file.adjacency}, {file.law.name}), and a budget that can change protects nobody; "
                    "leave them out."
                )
            if parts is not None and file.parts != names:
                raise ValueError(
                    f"parts={list(names)!r} are not those of the ledger at {self.path}, "
                    f"{list(file.parts)!r}, and a record could be in two of them; leave parts out."
                )
            file.check_sums()

    def part(self, name: str) -> Self:
        """Return the ledger for releases about one public part of the records.

        Of releases about different parts only the larger sum counts, as no record is in two of them.

        Parameters
        ----------
        name : str
            One of `parts`. Which records are in it must follow from public numbers, such as their
            position in the table, and never from their values: a replaced record stays in its part. With
            persons, all rows of one are in one part.

        Returns
        -------
        PrivacyLedger
            Of the same file. Fits in other processes know the path alone, unless it is their parameter
            `ledger`: they count for all records, which is safe and costs more.

        Raises
        ------
        ValueError
            If the ledger was not made with this part, or is that of a part already.

        Examples
        --------
        >>> import os, tempfile
        >>> from dpselect import PrivacyLedger
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = os.path.join(folder.name, "patients.ledger")
        >>> ledger = PrivacyLedger(path, epsilon=1.0, parts=["first half", "second half"])
        >>> ledger.part("first half").spend(0.75, label="a model")
        >>> ledger.part("second half").spend(0.5, label="its intervals")
        >>> ledger.spent(), ledger.part("second half").remaining()
        ((0.75, 0.0), (0.5, 0.0))
        >>> folder.cleanup()
        """
        with snapshot(self.path) as file:
            names = file.parts
        if self.part_name != WHOLE or name not in names:
            known = f"has the parts {list(names)!r}" if names else "has no parts"
            raise ValueError(
                f"{name!r} is no part of {self!r}, and the ledger {known}, so it is not known which "
                "records it is about; name one of the parts with which a ledger was made, as in "
                'PrivacyLedger(path, epsilon=1.0, parts=["first half", "second half"]).'
            )
        part = copy(self)
        part.part_name = name
        return part

    def reserve(
        self,
        epsilon: float,
        delta: float = 0.0,
        label: str = "release",
        *,
        adjacency: Adjacency | str = Adjacency.REPLACE_RECORD,
    ) -> Reservation:
        """Reserve a loss, before noise is drawn.

        Parameters
        ----------
        epsilon : float
            0 or more: the largest loss that may come out.
        delta : float, default=0.0
            In [0, 1].
        label : str, default="release"
            Public.
        adjacency : Adjacency or str, default="replace one record"
            The adjacency that the loss is for.

        Returns
        -------
        Reservation
            On disk when this returns.

        Raises
        ------
        BudgetExceededError
            If less than that is left.
        ValueError
            If the loss is for another adjacency than the ledger.
        """
        loss = PrivacyLoss(epsilon, delta, label=label, adjacency=adjacency)
        number, token = self._enter(loss, committed=False)
        return Reservation(self.path, number, token, self.rows_per_person)

    def spend(
        self,
        epsilon: float,
        delta: float = 0.0,
        label: str = "release",
        *,
        adjacency: Adjacency | str = Adjacency.REPLACE_RECORD,
        event: Event | None = None,
    ) -> None:
        """Reserve and commit in one step: for a release that is about to be made elsewhere.

        Parameters
        ----------
        epsilon : float
        delta : float, default=0.0
        label : str, default="release"
        adjacency : Adjacency or str, default="replace one record"
            As for `reserve`.
        event : Event, default=None
            What kind of mechanism it is, for `total`: the loss that it was planned with, such as
            ``GaussianEvent(mu)``.

        Raises
        ------
        BudgetExceededError, ValueError
            As for `reserve`; and if `event` spends more than `epsilon` and `delta` say.
        """
        loss = PrivacyLoss(epsilon, delta, label=label, adjacency=adjacency, event=event)
        if event is not None and event.exceeds(loss.epsilon, loss.delta):
            raise ValueError(
                f"event={event!r} is not private at epsilon={loss.epsilon:.6g} and "
                f"delta={loss.delta:.6g}, so the ledger would count less than is spent; write the "
                "epsilon and delta of this mechanism."
            )
        self._enter(loss, committed=True)

    def _enter(self, loss, committed):
        check_text("label", loss.label)
        with transaction(self.path) as file:
            loss = in_unit(loss, file, self.rows_per_person)
            if not file.affords(loss, self.part_name):
                left = file.left(self.part_name)
                raise BudgetExceededError(
                    f"{loss.label!r} needs epsilon={loss.epsilon:.6g} and delta={loss.delta:.6g}, and "
                    f"the ledger at {self.path} has epsilon={left[0]:.6g} and delta={left[1]:.6g} "
                    "left; ask for less, or for other records."
                )
            label = f"{self.label}: {loss.label}" if self.label else loss.label
            return file.enter(label, self.user or account(), loss, committed, self.part_name)

    def remaining(self) -> tuple[float, float]:
        """Return the remaining budget.

        Returns
        -------
        epsilon, delta : float
            They can be reserved together.
        """
        with snapshot(self.path) as file:
            return file.left(self.part_name)

    def carries(self, loss: PrivacyLoss) -> int:
        """Return how many more releases of a loss the remaining budget pays for.

        Parameters
        ----------
        loss : PrivacyLoss
            Of one release, such as ``PrivacyLoss(0.5)``.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the loss is for another adjacency than the ledger, or 0.

        Examples
        --------
        >>> import os, tempfile
        >>> from dpselect import PrivacyLedger, PrivacyLoss
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = PrivacyLedger(os.path.join(folder, "patients.ledger"), epsilon=2.0)
        ...     ledger.spend(0.3)
        ...     ledger.carries(PrivacyLoss(0.5))
        3
        """
        with snapshot(self.path) as file:
            number = file.carries(in_unit(loss, file, self.rows_per_person), self.part_name)
        if number == math.inf:
            raise ValueError(
                "loss is 0, which any budget pays for at any number of times; give another."
            )
        return int(number)

    def spent(self) -> tuple[float, float]:
        """Return the spent budget; uncommitted reservations count in full.

        Returns
        -------
        epsilon, delta : float
            Of all releases together, however amounts followed results. With ``composition="renyi"`` the
            first release costs most, and it is not what `remaining` lacks of the budget.
        """
        with snapshot(self.path) as file:
            return _guarantee(file, self.part_name)

    def total(self, delta: float) -> float:
        """Return the total epsilon of all releases at a delta: at most their sum.

        Parameters
        ----------
        delta : float
            In [1e-12, 1).

        Returns
        -------
        float
            The epsilon. It holds if how much each release spends did not depend on earlier results.

        Raises
        ------
        ValueError
            If `delta` is too small for what was spent.

        See Also
        --------
        dpselect.accounting.composed_epsilon : A finer total, by another library.

        Examples
        --------
        >>> import os, tempfile
        >>> from dpselect import PrivacyLedger
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = PrivacyLedger(os.path.join(folder, "patients.ledger"), epsilon=10.0)
        ...     for _ in range(100):
        ...         ledger.spend(0.1)
        ...     round(ledger.total(delta=1e-6), 2)
        5.22
        """
        with snapshot(self.path) as file:
            statements, parts = file.statements, file.parts
            parts_of = [row[-1] for row in file.entries] if parts else [WHOLE] * len(statements)
        totals = []
        for part in parts if self.part_name == WHOLE and parts else (self.part_name,):
            about = [text for text, of in zip(statements, parts_of) if of in (WHOLE, part)]
            # labels do not affect a total, and most losses are equal without them
            totals.append(composed_epsilon(unlabelled_losses(about), delta, accountant="concentrated"))
        return max(totals)

    @property
    def budget(self) -> tuple[float, float]:
        """(float, float) : Total epsilon and delta."""
        with snapshot(self.path) as file:
            epsilon, delta = map(float, file.budget)
            return epsilon, delta

    @property
    def composition(self) -> str:
        """str : How losses add up, "sum" or "renyi"."""
        with snapshot(self.path) as file:
            return file.law.name

    @property
    def parts(self) -> tuple[str, ...]:
        """tuple of str : Names of the public parts; empty if there are none."""
        with snapshot(self.path) as file:
            return file.parts

    @property
    def adjacency(self) -> str:
        """str : The adjacency that all losses are for."""
        with snapshot(self.path) as file:
            return file.adjacency

    def history(self) -> list[LedgerEntry]:
        """Return all entries in order.

        Returns
        -------
        list of LedgerEntry
        """
        with snapshot(self.path) as file:
            entries = file.entries
        return list(map(LedgerEntry.of, entries))

    def to_json(self) -> str:
        """Return budget and history as JSON.

        Returns
        -------
        str
        """
        with snapshot(self.path) as file:
            contents = file.budget, file.adjacency, file.law, file.entries, file.parts
        return write_json(*contents)

    @classmethod
    def from_json(cls, text: str, path: PathLike) -> Self:
        """Create a ledger with the budget and history that `to_json` returned.

        Parameters
        ----------
        text : str
        path : str or path-like
            Where no file is yet.

        Returns
        -------
        PrivacyLedger
            Reservations that were not committed count in full; they can be committed in the ledger
            where they were made only. Whoever goes on spending from both breaks the promise.

        Raises
        ------
        FileExistsError
            If there is a file: entries that were counted twice, or lost, would make it untrue.
        ValueError
            If the text is not from `to_json`, or its entries exceed its budget. No ledger is made.
        """
        path = str(Path(path).absolute())
        epsilon, delta, adjacency, law, parts, rows = read_json(text)
        with new_file(path, epsilon, delta, adjacency, law, parts) as file:
            for row in rows:
                file.copy(row)
        return cls(path)

    def __enter__(self) -> Self:
        opening = Opening(self)
        return entered(self, opening.begin, opening.end, opening.end)

    __exit__ = Exit()

    def __repr__(self):
        more = "" if self.rows_per_person is None else f", rows_per_person={self.rows_per_person}"
        part = "" if self.part_name == WHOLE else f".part({self.part_name!r})"
        return f"PrivacyLedger({self.path!r}{more}){part}"

    def __str__(self):
        with snapshot(self.path) as file:
            (epsilon, delta), spent = map(float, file.budget), _guarantee(file, self.part_name)
            rows, explained = file.entries, file.law.explained
            unit = Adjacency(file.adjacency).unit
        whose = "" if unit == "record" else ", for each person with all rows"
        lines = [
            f"epsilon {spent[0]:.6g} of {epsilon:.6g} and delta {spent[1]:.6g} of {delta:.6g} are spent"
            + whose
        ]
        lines += [f"  {LedgerEntry.of(row)}" for row in rows]
        return "\n".join([*lines, explained] if explained else lines)

    def __eq__(self, other):
        return isinstance(other, PrivacyLedger) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    @property
    def _key(self):
        return self.path, self.part_name


def _guarantee(file, part):
    return file.law.guarantee(tuple(map(float, file.spent(part))))
