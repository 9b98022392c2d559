"""A grid that only post-processes one private release: its candidates cost nothing.

The model is trained once, on the training part, and each candidate is another post-processing of
what was released. The choice is made on the validation part, which shares no record with
the training part, so the two losses do not add: the larger one counts.
"""

import numpy as np

from ...accounting.privacy_loss import PrivacyLoss
from ...base.capabilities import PostProcesses
from ...exceptions import CertificateError
from ...mechanisms import exponential_noise_scales, noisy_argmax
from ..plan import minimum_detectable_difference
from .held_out import HeldOut
from .strategy import Choice


class PostProcessing(HeldOut):
    """Post-process one release on the training part in k ways; the validation part chooses."""

    name = "one_release"

    def prepare(self):
        score, model = self.problem.score, self.problem.candidates[0].model
        if not np.isfinite(score.sensitivity(1)):
            raise CertificateError(
                f"No bound exists on what one record adds to {type(score).__name__} for a released "
                f"{type(model).__name__}; use a score with a bounded range, such as "
                "'clipped_squared_error' or 'brier'."
            )
        super().prepare()

    def dry_run(self):
        dummy = self.dry_run_candidate(self.problem.candidates[0])
        for candidate in self.problem.candidates:
            _post_process(dummy, candidate)

    def plan(self):
        problem, k = self.problem, len(self.problem.candidates)
        epsilon = problem.epsilon
        scales = exponential_noise_scales(np.full(k, self.sensitivity), epsilon)
        blur = minimum_detectable_difference(scales)
        said = (
            (
                "All candidates post-process one release on the training part; the choice is made "
                "on the validation part, and the larger of the two losses counts."
            ),
            problem.score.indistinguishable(blur),
        )
        return self.held_out_plan(said, scales, blur)

    def choose(self, X, y, stream):
        problem, plan = self.problem, self.plan()
        rows = problem.candidates[0].transform(X)
        model = self.fit(0, rows, y, self.train, problem.epsilon, self.release_state(stream))
        models = [_post_process(model, candidate) for candidate in problem.candidates]
        scores = [self.score(processed, rows, y) for processed in models]
        best = noisy_argmax(
            scores, plan.sensitivity, problem.epsilon, stream.child("selection").for_release()
        )
        choice = PrivacyLoss(
            problem.epsilon,
            seeded=problem.seeded,
            adjacency=problem.adjacency,
            label=f"choice among {len(models)} models of one release, on the validation part",
        )
        loss = PrivacyLoss.parallel(
            [model.privacy_, choice], label="one release and one choice, on disjoint parts"
        )
        return Choice(best, [loss], problem.candidates[best].with_steps(models[best]), plan)


def applies(candidates):
    """Return whether all candidates post-process one release."""
    model = candidates[0].model
    free = model.post_processing_params if isinstance(model, PostProcesses) else ()
    return len(candidates) > 1 and all(
        candidate.belongs_to_model(name) and name.rpartition("__")[2] in free
        for candidate in candidates
        for name in candidate.params
    )


def _post_process(model, candidate):
    """Return the candidate's post-processing of what `model` released."""
    params = candidate.model.get_params()
    return model.post_process(**{name: params[name] for name in model.post_processing_params})
