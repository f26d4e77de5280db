"""DL-EM (AggNet): a network and one confusion matrix per worker, fitted jointly."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.checkpoints import open_learner_checkpoint
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.loop import Step
from wisecrowd.errors import UsageError
from wisecrowd.learn._classifier_em import ClassifierEM, StepOutputs
from wisecrowd.nn.classifier_choice import make_classifier
from wisecrowd.nn.network_classifier import NetworkClassifier
from wisecrowd.nn.process_group import current_process_group
from wisecrowd.nn.resumption import make_resumable_step


@method_class
class DLEM(ClassifierEM):
    """Neural network and one confusion matrix per worker, fitted jointly by EM.

    This is the model of `Raykar` with a network f, which an M-step trains for one epoch instead of fitting it completely:

        E:  q_i(k) ∝ f_k(x_i) Π_r π_r[k, y_ir]
        M:  π_r[k, l] = (Σ_i q_i(k) [y_ir = l] + s_kl) / (Σ_i q_i(k) [y_ir] + s_k·);
            one epoch of f on the loss Σ_i Σ_k q_i(k) log 1/f_k(x_i)

    Albarqouni et al. call it AggNet, Rodrigues and Pereira DL-EM. The iteration starts from the vote shares: the first M-step
    trains the network on them for ``pretraining`` epochs. E-steps run without dropout and clip class probabilities from below.
    The result is that of the last iteration; no epoch is selected.

    The code published by Rodrigues and Pereira differs: it scores workers against the network instead of the posterior, does
    not normalise the posterior, adds pseudo-votes to counts but not to their totals, and starts from uninformative workers.

    Use it for images, for many features, or for classes that only combinations of features separate. The objective of
    stochastic steps does not converge, so ``tol`` is zero and ``max_iter`` decides how long to train: too few iterations
    underfit, too many fit the noise of the votes. Benchmark:
    ``wisecrowd bench show all-learners``.

    A fit that is interrupted resumes from its ``checkpoint`` folder when it is started again, with the same result to the
    last bit. The file stays in the folder.

    Examples
    --------
    >>> from wisecrowd import DLEM, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = DLEM(max_iter=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("albarqouni2016aggnet", "rodrigues2018deep")
    breaks: ClassVar[dict[str, str]] = {
        "task_names_do_not_matter": "batches are drawn by position, and names decide on the order of tasks",
        "class_names_do_not_matter": "first weights are drawn by position, and names decide on the order of classes",
    }

    classifier: Any = parameter(
        default="mlp", help="Network: 'mlp', 'cnn', 'linear', a torch module, or a function that returns one."
    )
    l2: float | None = parameter(default=1.0, help="Ridge penalty of the weights, relative to the sum over all tasks.")
    pretraining: int = parameter(default=5, help="Number of epochs on the vote shares in the first M-step.")
    epochs_per_step: int = parameter(default=1, help="Number of epochs of every later M-step.")
    hidden: int = parameter(default=128, help="Width of the hidden layer.")
    dropout: float = parameter(default=0.5, help="Dropout rate of the hidden layer.")
    learning_rate: float = parameter(default=1e-3, help="Learning rate of Adam.")
    batch_size: int = parameter(default=64, help="Number of tasks in a batch.")
    max_iter: int = parameter(default=50, help="Maximum number of EM iterations.")
    tol: float = parameter(default=0.0, help="Relative change of the objective at which the iteration stops.")
    checkpoint: str | None = parameter(
        default=None, help="Folder for the state of the fit; an interrupted fit resumes from it."
    )

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        if min(self.pretraining, self.epochs_per_step) < 1:
            raise UsageError(
                f"pretraining and epochs_per_step must be 1 or more; got {self.pretraining} and {self.epochs_per_step}"
            )

    def _make_classifier(self, l2: float | None) -> SoftClassifier:
        return self._make_network(l2, self.pretraining)

    def _make_final_classifier(self, l2: float | None, n_iter: int) -> SoftClassifier:
        # It is trained for as many epochs as the network of every fold.
        return self._make_network(l2, self.pretraining + (n_iter - 1) * self.epochs_per_step)

    def _make_network(self, l2: float | None, epochs: int) -> SoftClassifier:
        """Return an untrained network whose first fit takes a given number of epochs."""
        return make_classifier(
            self.classifier,
            l2=l2,
            random_state=self.random_state,
            hidden=self.hidden,
            dropout=self.dropout,
            epochs=epochs,
            epochs_per_fit=self.epochs_per_step,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
        )

    def _wrap_step(
        self,
        step: Step,
        outputs: StepOutputs,
        classifiers: list[SoftClassifier],
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
    ) -> Step:
        if self.checkpoint is None:
            return step
        network = self._make_classifier(self.l2)
        description = network.describe() if isinstance(network, NetworkClassifier) else repr(network)
        checkpoint = open_learner_checkpoint(
            self.checkpoint, self, description, X, crowd, gold, writes=current_process_group().is_first
        )
        return make_resumable_step(step, checkpoint, self.max_iter, outputs, classifiers)
