"""How long to train, by votes that are hidden: after how many epochs is it foretold best what was said?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from wisecrowd.errors import UsageError
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork
from wisecrowd.nn.modules import BLOCK
from wisecrowd.nn.training_set import TrainingSet

if TYPE_CHECKING:
    from wisecrowd.nn.deep_learner import DeepLearner

#: The share of votes that is hidden, how many epochs are tried, and how many in vain.
HIDDEN, TRIED, IN_VAIN = 0.2, 500, 30


def search_epochs(method: DeepLearner, training_set: TrainingSet, place: Path | None) -> tuple[int, pd.DataFrame]:
    """The number of epochs after which hidden votes are foretold best, and the curve of the search.

    A network of its own learns the other votes; with a ``place``, the search has a checkpoint beside it.
    """
    kept, hidden = training_set.crowd.hide(HIDDEN, random_state=method.random_state)
    if min(kept.n_votes, hidden.n_votes) == 0:
        raise UsageError(
            f"epochs='auto' compares epochs by hidden votes, and {training_set.crowd.n_votes} are too few to hide any; say how "
            "many epochs: epochs=50"
        )
    before, after = training_set.only(kept), training_set.only(hidden)
    network = method._new_network(method.random_state)
    method._prepare(network, kept)
    network.module.to(training_set.inputs)
    file = None if place is None else place.with_stem(f"{place.stem}-search")
    method.epochs_ = TRIED
    trainer = method._new_trainer(network, len(training_set), method.random_state, file, patience=IN_VAIN)
    method._run(trainer, network, before, lambda: -surprise(method, network, after))
    assert trainer.history.best is not None
    return trainer.history.best + 1, trainer.history.table().rename(columns={"validation": "hidden"})


def surprise(method: DeepLearner, network: CrowdNetwork, training_set: TrainingSet) -> float:
    """The mean of −log P(r says y | x) over the votes of a training_set, which need not have been learnt from."""
    torch = need_torch()
    total, weight = 0.0, 0.0
    for tasks in torch.arange(len(training_set), device=training_set.inputs.device).split(BLOCK):
        batch = training_set.see(network, tasks)
        said = method._label_log_probs(batch).gather(1, batch.label[:, None])[:, 0]
        total -= float((batch.weight * said).sum())
        weight += float(batch.weight.sum())
    return total / weight
