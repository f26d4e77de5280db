"""EM iterations that resume from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.base.checkpoints import Arrays, Checkpoint, CheckpointState
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.em.loop import Statistics, Step
from wisecrowd.nn.network_classifier import NetworkClassifier
from wisecrowd.nn.process_group import current_process_group
from wisecrowd.nn.trainer import select_prefix

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def make_resumable_step(
    step: Step,
    checkpoint: Checkpoint,
    max_iter: int,
    outputs: DataclassInstance,
    classifiers: Sequence[SoftClassifier],
) -> Step:
    """Return an EM step that writes a checkpoint and skips the steps that an earlier process completed.

    If the checkpoint holds earlier steps, outputs and classifiers are restored. The first calls then return the
    recorded objectives, so the iteration needs no change.

    Parameters
    ----------
    step : callable
        EM step, which fits the classifiers.
    checkpoint : Checkpoint
        File of this fit.
    max_iter : int
        Number of the step after which the checkpoint is final.
    outputs : dataclass instance
        Results that the step sets beside its statistics: arrays and numbers.
    classifiers : sequence of SoftClassifier
        Classifiers that the step fits.

    Returns
    -------
    callable

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> outputs = make_dataclass("Outputs", [])()
    >>> step = make_resumable_step(lambda statistics: (statistics, -1.5), Checkpoint(None, {}), 10, outputs, [])
    >>> step(Statistics(np.ones(2), np.ones((3, 2))))[1]
    -1.5
    """
    current_process_group().wait()  # the process that writes may not have finished
    state = checkpoint.read()
    saved = None if state is None else state.arrays
    trace: list[float] = []
    if saved is not None:
        trace = saved["trace"].tolist()
        for name, array in select_prefix(saved, "outputs").items():
            value: Any = array if array.ndim else array.item()
            setattr(outputs, name, value)
        for number, classifier in enumerate(classifiers):
            classifier.restore(select_prefix(saved, f"classifier-{number}"))
    recorded_objectives = list(trace)

    def make_state(statistics: Statistics) -> CheckpointState:
        arrays: Arrays = {
            "trace": np.array(trace),
            "class_counts": statistics.class_counts,
            "tally": statistics.tally,
        }
        arrays |= {f"outputs.{name}": np.asarray(value) for name, value in asdict(outputs).items()}
        for number, classifier in enumerate(classifiers):
            inner = classifier.state() if isinstance(classifier, NetworkClassifier) else classifier.arrays()
            arrays |= {f"classifier-{number}.{name}": array for name, array in inner.items()}
        return CheckpointState(arrays)

    def resumable_step(statistics: Statistics) -> tuple[Statistics, float]:
        if recorded_objectives and saved is not None:
            return Statistics(saved["class_counts"], saved["tally"]), recorded_objectives.pop(0)
        updated, objective = step(statistics)
        trace.append(objective)
        checkpoint.write_if_due(lambda: make_state(updated), final=len(trace) == max_iter)
        return updated, objective

    return resumable_step
