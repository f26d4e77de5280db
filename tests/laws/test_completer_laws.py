"""Every completer against every law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.completer_laws import COMPLETER_LAWS
from wisecrowd.base.registry import methods
from wisecrowd.data.crowd import Crowd


@pytest.fixture(scope="module")
def crowds(crowd_of: Callable[..., Crowd]) -> dict[str, Crowd]:
    return {"sparse": crowd_of(0, 40, 10, 3, 0.3), "dense": crowd_of(1, 20, 6, 2, 0.8)}


@pytest.mark.parametrize("law", COMPLETER_LAWS)
@pytest.mark.parametrize("name", methods("complete"))
def test_every_completer_obeys_every_law(
    name: str, law: str, obeys: Callable[..., None], crowds: dict[str, Crowd], quick: Callable[[str], Completer]
) -> None:
    obeys(quick(name), law, COMPLETER_LAWS, crowds.values())


def test_a_completer_that_prefers_the_first_class_is_caught(crowds: dict[str, Crowd]) -> None:
    class First(methods("complete")["gmv"]):  # type: ignore[misc]  # a class found by name
        def _worker_label_probs(self, tasks: np.ndarray[Any, Any], workers: np.ndarray[Any, Any]) -> WorkerLabelProbs:
            label_probs = np.zeros((len(tasks), len(workers), len(self.classes_)))
            label_probs[:, :, 0] = 1
            return WorkerLabelProbs(label_probs)

    with pytest.raises(AssertionError, match="renaming classes"):
        COMPLETER_LAWS["class_names_do_not_matter"](First(), crowds["dense"])
