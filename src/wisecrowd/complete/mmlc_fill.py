"""MMLCFill: missing votes by the predictions of a learner (Han et al.)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import UsageError


@method_class
class MMLCFill(Completer):
    """Completion by the worker model of `MMLC`, called MMLC-df in the paper.

        P(label of worker r | x_i) = softmax(out(Σ_e v_re u_e(x_i)))

    with experts u_e that all workers share and mix in their own way. Observed votes are never changed. Any other ``learner`` that
    predicts single workers can take the place of `MMLC`: with `CrowdLayer` or `Concord`, the predictions follow from a classifier
    and a confusion matrix.

    The method brings features into a crowd for aggregators without features. Use it where tasks have features and few votes.
    Where tasks have many votes, `DSFill` predicts them as well at a lower cost. The predictions for a worker with one or two votes
    are close to those of the crowd, and a thousand of them would outvote the observed votes. ``min_votes`` (the threshold of the
    paper) leaves such workers out, and by default the filled votes on a task weigh no more in total than the observed votes on an
    average task. ``fill_weight=1`` is the setting of the paper.

    The text of the paper replaces the votes of workers above the threshold by predictions; its equations and its program keep
    them, as here. The paper trains for a number of epochs chosen for each dataset; here hidden votes decide (see `MMLC`).
    Completed with ``fill_weight=1``, a crowd contains little beside the predictions, so every aggregator returns nearly what
    `MMLC` itself returns (``wisecrowd bench show han2025mmlc-fill``). Crowds with a single class are refused.

    Examples
    --------
    >>> from wisecrowd import MMLC, MMLCFill, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=100)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> filled = MMLCFill(learner=MMLC(epochs=20, n_experts=4)).complete(simulation.crowd, X)
    >>> filled.n_votes, filled.select_observed() == simulation.crowd
    (1000, True)
    """

    references: ClassVar[tuple[str, ...]] = ("han2025mmlc",)
    uses_features: ClassVar[bool] = True
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "batches are drawn by position, and names decide on the order of tasks",
        "class_names_do_not_matter": "first weights are drawn by position, and names decide on the order of classes",
    }

    learner: Any = parameter(
        default=None, help="Unfitted learner that predicts the votes; None uses MMLC with this random_state."
    )

    learner_: Learner = fitted(help="Fitted learner.")
    features_: NDArray[np.float64] = fitted(help="Features of the tasks.", shape=("n_tasks", "..."), finite=True)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.learner is not None and not isinstance(self.learner, Learner):
            raise UsageError(
                f"learner must be an unfitted learner, such as MMLC(epochs=50), or None; got {self.learner!r}"
            )

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        learner: Any = find("mmlc")(random_state=self.random_state) if self.learner is None else self.learner  # type: ignore[call-arg]
        votes = crowd.replace_fields(has_task_order=True)  # the rows of X are in the order of its tasks
        self.learner_ = learner.clone_unfitted().fit(X, votes)
        self.features_ = X

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        worker_ids = as_index(self.worker_index_)[workers]
        return WorkerLabelProbs(self.learner_.predict_worker_proba(self.features_[tasks], worker_ids))
