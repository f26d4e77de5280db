"""An EM iteration that outlives its process: each step is kept in a checkpoint, and told instead of taken again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.learner import Learner
from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.loop import Statistics, Step
from wisecrowd.errors import UsageError
from wisecrowd.nn.checkpoint import Arrays, Checkpoint, fingerprint
from wisecrowd.nn.network_classifier import Network
from wisecrowd.nn.trainer import part_of

#: Parameters that do not change what a fit gives, and the classifier, which knows better how to describe itself.
LEFT_OUT = ("checkpoint", "verbose", "classifier")


def own_place(
    method: Learner, folder: str, shown: str, X: NDArray[Any], crowd: Crowd, gold: NDArray[Any] | None
) -> Checkpoint:
    """A file in the folder for this fit alone, named by all that it depends on: other fits, say of cross-validation,
    have theirs beside it. ``shown`` describes the classifier.
    """
    if Path(folder).is_file():
        raise UsageError(f"checkpoint names a folder to keep files in, and {folder} is a file; name another place")
    settings = {each.name: getattr(method, each.name) for each in parameter_fields(method) if each.name not in LEFT_OUT}
    votes = (crowd.task, crowd.worker, crowd.label, crowd.weight, crowd.n_tasks, crowd.n_classes)
    name = fingerprint(X, *votes, gold, shown, settings)
    return Checkpoint(Path(folder) / f"{method.name}-{name}.safetensors", {"fit": name})


def resumable(
    step: Step,
    place: Checkpoint,
    max_iter: int,
    method: Learner,
    learns: Sequence[str],
    parts: Sequence[SoftClassifier],
) -> Step:
    """The step, noting where it leads.

    ``learns`` are the attributes of the method that a step sets, and ``parts`` the classifiers that it trains. If the
    checkpoint holds steps that an earlier process took, method and parts are put where the last of them left them, and
    the first calls give their objectives: whoever iterates need not know.
    """
    reached = place.read()
    trace: list[float] = []
    if reached is not None:
        trace = reached["trace"].tolist()
        for name in learns:
            kept = reached[f"learnt.{name}"]
            setattr(method, name, kept if kept.ndim else kept.item())
        for number, part in enumerate(parts):
            part.restore(part_of(reached, f"part-{number}"))
    told = list(trace)

    def arrays(found: Statistics) -> Arrays:
        state: Arrays = {"trace": np.array(trace), "classes": found.classes, "tally": found.tally}
        state |= {f"learnt.{name}": np.asarray(getattr(method, name)) for name in learns}
        for number, part in enumerate(parts):
            inner = part.state() if isinstance(part, Network) else part.arrays()
            state |= {f"part-{number}.{name}": array for name, array in inner.items()}
        return state

    def noted(statistics: Statistics) -> tuple[Statistics, float]:
        if told and reached is not None:
            return Statistics(reached["classes"], reached["tally"]), told.pop(0)
        found, objective = step(statistics)
        trace.append(objective)
        place.offer(lambda: arrays(found), last=len(trace) == max_iter)
        return found, objective

    return noted
