"""Search for the number of epochs by hidden votes."""

from __future__ import annotations

from dataclasses import replace

from wisecrowd.errors import UsageError
from wisecrowd.nn.deep_training import EpochSearch, TrainingJob
from wisecrowd.nn.trainer import Trainer

#: Share of votes that the search hides.
HIDDEN_SHARE = 0.2
#: Largest number of epochs that the search tries.
MAX_SEARCH_EPOCHS = 500
#: Number of epochs without improvement after which the search stops.
PATIENCE = 30


def search_epochs(job: TrainingJob) -> EpochSearch:
    """Find the number of epochs after which hidden votes have the highest log-probability.

    A separate network is trained on the remaining votes.

    Parameters
    ----------
    job : TrainingJob
        Description of the training; the search writes a checkpoint beside that of the job.

    Returns
    -------
    EpochSearch

    Raises
    ------
    UsageError
        If there are too few votes to hide any.

    Examples
    --------
    >>> from wisecrowd import CrowdLayer, simulate_crowd
    >>> import numpy as np
    >>> simulation = simulate_crowd(n_tasks=30, n_workers=5, n_classes=2, votes_per_task=3)
    >>> fitted = CrowdLayer(epochs="auto", hidden=2).fit(np.ones((30, 1)), simulation.crowd)
    >>> fitted.epochs_ == int(fitted.search_["hidden"].argmax()) + 1
    True
    """
    training_set, seed = job.training_set, job.settings.random_state
    visible, hidden = training_set.crowd.hide(HIDDEN_SHARE, random_state=seed)
    if min(visible.n_votes, hidden.n_votes) == 0:
        raise UsageError(
            f"epochs='auto' compares epochs by hidden votes, but {training_set.crowd.n_votes} votes are too few to hide any; "
            "give the number of epochs, such as epochs=50"
        )
    visible_set, hidden_set = training_set.with_votes(visible), training_set.with_votes(hidden)
    network = job.builder.build(seed)
    job.builder.initialize(network, visible)
    network.module.to(training_set.inputs)
    path = None if job.checkpoint is None else job.checkpoint.with_stem(f"{job.checkpoint.stem}-search")
    settings = replace(job.settings, epochs=MAX_SEARCH_EPOCHS, patience=PATIENCE)
    groups = job.make_groups(network, len(training_set))
    trainer = Trainer(network.module, settings, groups=groups, checkpoint=path, title=job.title)
    trainer.run(
        lambda tasks: job.loss(network, visible_set, tasks, len(trainer.history)),
        len(training_set),
        validate=lambda: -job.loss.mean_vote_nll(network, hidden_set),
        row_weights=visible_set.task_weights,
        separable=job.loss.separable,
    )
    assert trainer.history.best_epoch is not None
    curve = trainer.history.to_frame().rename(columns={"validation": "hidden"})
    return EpochSearch(trainer.history.best_epoch + 1, curve)
