"""The exact attack: the likelihood ratio of a release between neighbouring data sets."""

import math

import numpy as np

from .case import as_records, parameters_to_try
from .fixed_noise import FixedNoise
from .laws import gaussian_delta
from .neighbours import many_columns, neighbourhoods, neighbourhoods_of_persons
from .noisy_sums import MAX_NUMBERS, ReleasedSums, Sums
from .person_checks import takes_persons
from .sums_checks import NO_GATE
from .tally import leave_out, require
from .watched_gate import HOOK

# tolerated standard error of a scale
SURE = 6
# numbers of settings with exact scales, and of pairs for which the noise that explains the other
# release is solved for
HARDEST_SETTINGS, HARDEST_PAIRS = 4, 3
# number of neighbourhoods if each release takes a solver: in the first setting, and in the others
MAX_NEIGHBOURHOODS = (4, 2)
# marks, in place of the number of records, that records are persons
PERSONS = "persons'"


def _settings(case):
    """Yield (parameters, columns, records, whether few data sets suffice, noises to look at)."""
    near, far = (3.0,), (-3.0, 3.0, -30.0, 30.0)
    yield {"epsilon": 1.0}, case.some, 12, False, near
    for params in parameters_to_try(case, 1.0):
        yield params, min(case.some, 2), 3, True, far
    yield {"epsilon": 0.1}, case.one, 30, True, near
    yield {"epsilon": 8.0}, case.some, 5, True, near
    yield {"epsilon": 1.0}, case.one, 2, True, near
    yield {"epsilon": 1.0}, case.one, 600, True, ()
    many = many_columns(case)
    if many:
        yield {"epsilon": 1.0}, many, 12, True, ()
    if takes_persons(case):
        yield {"epsilon": 1.0}, min(case.some, 2), PERSONS, True, near
    else:
        leave_out("persons with several rows, as fit takes no groups")


def check_the_loss_of_each_noise(case):
    """Check that, at every noise, the likelihood ratio on neighbours is within the stated loss."""
    attacks = []
    for params, d, n, few, lengths in _settings(case):
        try:
            if n == PERSONS:
                hoods = list(neighbourhoods_of_persons(case, d, params))
            else:
                hoods = list(neighbourhoods(case, n, d, params, few))
            if n == 3:
                edge = case.edge(d, params)
                hoods.insert(0, [as_records([record] + [edge[0]] * (n - 1)) for record in edge])
            firsts = [hood[0] for hood in hoods]
            sums = Sums(case, params, firsts)
            if not sums.first.passed and not sums.hooked:
                sums = ReleasedSums(case, params, firsts)
        except (TypeError, ValueError) as refusal:
            leave_out(f"{params}, which is refused: {str(refusal)[:60]}")
            continue
        attack = _Attack(case, params, n, sums, hoods, lengths)
        attack.by_solving()
        attacks.append(attack)
    hardest = sorted(attacks, key=lambda attack: -attack.ratio)[:HARDEST_SETTINGS]
    for attack in hardest:
        attack.exactly()


class _Attack:
    """Attack of one setting."""

    def __init__(self, case, params, n, sums, hoods, lengths):
        self.epsilon, self.where = params["epsilon"], f"With {params} and {n} records"
        self.sums, self.hoods, self.lengths, self.ratio = sums, hoods, lengths, 0.0
        self.fixed = None if sums.complete else self._fixed(case, params)
        self.laws = self._laws()
        self.values = [sums.values(hood) for hood in self.hoods] if self.laws else []
        self.losses = self._of_sums(0) if self.laws else [0.0] * len(self.hoods)
        if self.laws:
            self.ratio = self._worst() / self.epsilon
            self._require(self._of_sums(SURE))

    def _leave_out(self, why):
        leave_out(f"w{self.where[1:]}: {why}")

    def _fixed(self, case, params):
        why = "not all noise is that of sums at the gate" if self.sums.first.passed else NO_GATE
        if not self.lengths or not self.sums.hooked:
            self._leave_out(f"{why}{'' if self.sums.hooked else f', and there is no {HOOK}'}")
            return None
        fixed = FixedNoise(case, params)
        try:
            refusal = fixed.prepare(self.hoods[0][0])
        except ValueError as error:
            refusal = str(error)
        if refusal is not None:
            self._leave_out(f"{why}, and {refusal}")
            return None
        self.sums.keep_only_other_noise()
        self.hoods = self.hoods[: MAX_NEIGHBOURHOODS[len(self.hoods) < 6]]
        return fixed

    def _laws(self):
        """Return the law of each sum, or None if no loss follows from it."""
        if not self.sums.places:
            return []
        if self.sums.size > MAX_NUMBERS:
            return self._leave_out(f"more than {MAX_NUMBERS} numbers")
        laws = self.sums.laws(exactly=False)
        if None in laws:
            return self._leave_out("noise of no law that is known")
        kinds = {law.kind for law in laws}
        if self.sums.delta and kinds and kinds != {"gaussian"}:
            return self._leave_out("no exact loss is known of this noise with a delta")
        return laws

    def _of_sums(self, slack):
        return [self.sums.losses(hood, self.laws, slack) for hood in self.values]

    def _worst(self, losses=None):
        worst = max(np.max(found, initial=0.0) for found in losses or self.losses)
        # for Gaussian noise it is mu^2
        return math.sqrt(worst) if self._gaussian() else float(worst)

    def _gaussian(self):
        return any(law.kind == "gaussian" for law in self.laws)

    def _exceeds(self, worst):
        if self._gaussian():
            return gaussian_delta(self.epsilon, worst) > 1.02 * self.sums.delta
        return worst > 1.001 * self.epsilon + 1e-9

    def _require(self, losses):
        worst = self._worst(losses)
        require(
            not self._exceeds(worst),
            f"{self.where}, of which one is replaced, the values that noise hides differ by {worst:.3g} "
            f"in units of the scale of that noise, which epsilon={self.epsilon:g} does not allow.",
        )

    def exactly(self):
        """Estimate the scale of the noise of sums more exactly, if the loss is near the stated one."""
        if self.laws and self._exceeds(self._worst()):
            self.laws = self.sums.laws(exactly=True)
            self._require(self._of_sums(SURE))

    def by_solving(self):
        """Find the noise that explains a release on a neighbour, where the noise passes a solver."""
        if self.fixed is None or self.laws is None:
            return
        found = []
        for k, (hood, sums) in enumerate(zip(self.hoods, self.losses)):
            for losses, r in self.fixed.hardest(hood, self.lengths[:1] if k else self.lengths):
                losses = losses + sums
                for pair in np.argsort(-losses.ravel())[:2]:
                    i, j = divmod(int(pair), len(hood))
                    other = float(np.broadcast_to(sums, losses.shape)[i, j])
                    found.append((-losses[i, j], len(found), hood[i], hood[j], r, other))
        explained = 0
        for *_, records, neighbour, r, other in sorted(found, key=lambda one: one[:2])[:HARDEST_PAIRS]:
            loss = self.fixed.loss(records, neighbour, r)
            if loss is None:
                continue
            explained, loss = explained + 1, loss + other
            require(
                loss <= (1.02 + SURE * self.fixed.error) * self.epsilon + 0.01,
                f"{self.where} there is a noise at which one record makes what comes out "
                f"exp({loss:.3g}) times as likely, and not exp({self.epsilon:g}) times.",
            )
        if not explained:
            self._leave_out("no noise was found that explains a release")
