"""What learners have in common that train two networks on the same tasks, each for the other to learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.trainer import Trainer
from wisecrowd.nn.training_set import TrainingSet

if TYPE_CHECKING:
    from torch import Tensor

Twins = tuple[CrowdNetwork, CrowdNetwork]


@method_class
class TwinLearner(DeepLearner):
    """Two networks that differ by what they started from; the prediction is the mean of both.

    >>> from wisecrowd import CCC
    >>> issubclass(CCC, TwinLearner)
    True
    """

    foretells: ClassVar[bool] = False
    separable: ClassVar[bool] = False

    if TYPE_CHECKING:  # left by _fit

        @property
        def twin_(self) -> CrowdNetwork: ...

        @twin_.setter
        def twin_(self, fitted: CrowdNetwork) -> None: ...

    def _twins(self, network: CrowdNetwork, training_set: TrainingSet) -> Twins:
        """The network, and another for the same inputs; both are left in the learner."""
        twin = self._new_network(self.random_state + 1)
        twin.standardiser = network.standardiser
        twin.module.to(training_set.inputs)
        self.network_, self.twin_ = network, twin
        return network, twin

    def _train_twins(
        self,
        loss: Callable[[Tensor, Trainer], Tensor],
        training_set: TrainingSet,
        place: Path | None,
        kept: Mapping[str, Tensor],
    ) -> None:
        """Lower the loss of both on some tasks. What is ``kept`` is a buffer of the trainer's model: a checkpoint has it."""
        twins = (self.network_, self.twin_)
        both = need_torch().nn.ModuleList([each.module for each in twins])
        for name, start in kept.items():
            both.register_buffer(name, start)
        groups = [group for each in twins for group in self._groups(each, len(training_set))]
        settings = self._settings(self.random_state, is_small=self.network_.is_small)
        trainer = Trainer(both, settings, groups=groups, checkpoint=place, what=type(self).__name__)
        validate = self._validate(training_set)
        trainer.run(lambda tasks: loss(tasks, trainer), len(training_set), validate=validate, separable=self.separable)
        self._note(trainer)
        if self.keep == "selected" and trainer.best is not None:
            both.load_state_dict(trainer.best)

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return (self._proba_by(self.network_, X) + self._proba_by(self.twin_, X)) / 2
