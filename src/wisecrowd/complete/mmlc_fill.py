"""MMLCFill: what a worker says is learnt from features, and everybody's from everybody (Han et al.)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.completer import Answers, Completer
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.vocabulary import as_index
from wisecrowd.errors import UsageError


@method_class
class MMLCFill(Completer):
    """What each worker would say of a task's features, as `MMLC` learnt it: the paper's MMLC-df.

        P(r says · | x_i) = softmax(out(Σ_e v_re u_e(x_i)))

    with experts u_e that all workers share and mix in their own way. Every missing vote is foretold, and by default the
    likeliest label is filled in; votes that were cast are never changed. Any other ``learner`` will do that says what single
    workers would say: with `CrowdLayer` or `Concord`, say, answers follow from a classifier and a confusion matrix.

    It brings features into a crowd for aggregators that look at none. To choose where there are features and few labels per
    task; where tasks have many labels, or nothing but the votes, `DSFill` foretells them as well at no cost. A worker with
    one or two labels is filled in much as the crowd's centre would answer, and a thousand such answers outvote real ones:
    ``min_labels`` (the paper's threshold) leaves such workers alone, and by default the filled votes on a task weigh no
    more together than real ones do. ``fill_weight=1`` is the paper's way.

    The paper says that votes of workers beyond the threshold are replaced by what is foretold; its equations and program
    keep them, and so does this. Its figures are of a model that was trained for a fixed number of epochs, chosen for each
    dataset; here hidden votes choose (see `MMLC`). For one class only there is nothing to learn, which is refused.

    Filled in the paper's way, the vote gains eight points on LabelMe and on Music and one on the sentences of CrowdTruth, and
    Dawid–Skene five, one and two; FastDS and HDS lose a little on Music. But then filled votes are all that counts: one
    aggregator says what any other does, and what `MMLC` itself would say, which is simpler to have
    (``wisecrowd bench show han2025mmlc-fill``).

    >>> from wisecrowd import MMLC, MMLCFill, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=100, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=100)}, index=made.truth.index)
    >>> filled = MMLCFill(learner=MMLC(epochs=20, n_experts=4)).complete(made.crowd, X)
    >>> filled.n_votes, filled.only_observed() == made.crowd
    (1000, True)
    """

    references: ClassVar[tuple[str, ...]] = ("han2025mmlc",)
    uses_features: ClassVar[bool] = True
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "batches are drawn by position, and names decide on the order of tasks",
        "class_names_do_not_matter": "first weights are drawn by position, and names decide on the order of classes",
    }

    learner: Any = parameter(
        default=None, help="who foretells: an unfitted learner, or None, MMLC with this random_state"
    )

    def _check(self) -> None:
        super()._check()
        if self.learner is not None and not isinstance(self.learner, Learner):
            raise UsageError(
                f"learner must be one that says what workers would say, such as MMLC(epochs=50), or None; got {self.learner!r}"
            )

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        kind: Any = find("mmlc")(random_state=self.random_state) if self.learner is None else self.learner  # type: ignore[call-arg]
        votes = crowd._replace(np.arange(crowd.n_votes), tasks_given=True)  # as rows are in the order of its tasks
        self.learner_: Learner = kind.unfitted().fit(X, votes)
        self.features_ = X

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> Answers:
        return Answers(self.learner_.predict_worker_proba(self.features_[tasks], as_index(self.worker_index_)[workers]))
