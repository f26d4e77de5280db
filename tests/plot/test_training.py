"""Training: losses, held-out votes and objectives by epoch and iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from wisecrowd import CrowdLayer, DawidSkene, MajorityVote, plot
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import Simulation


def test_em_climbs_by_iteration(made: Simulation, drawn: Any) -> None:
    fitted = DawidSkene().fit(made.crowd)
    ax = plot.training(fitted)
    assert drawn.line(ax, 0) == [list(range(1, fitted.n_iter_ + 1)), fitted.trace_.tolist()]
    assert drawn.line(plot.training(fitted.trace_), 0) == drawn.line(ax, 0)


@pytest.mark.torch
def test_a_network_has_its_loss_and_its_best_epoch(made: Simulation, drawn: Any) -> None:
    X = np.eye(3)[made.truth_codes]
    fitted = CrowdLayer(epochs=4, validation=0.2).fit(pd.DataFrame(X, index=made.crowd.tasks), made.crowd)
    ax = plot.training(fitted)
    history = fitted.history_
    assert drawn.line(ax, 0) == [[1, 2, 3, 4], history["loss"].tolist()]
    (right,) = (other for other in ax.figure.axes if other is not ax)
    assert drawn.line(right, 0) == [[1, 2, 3, 4], history["validation"].tolist()]
    best = history["validation"].idxmax()
    assert drawn.line(ax, 1)[0] == [best, best]
    assert drawn.names(right)[-1] == f"best epoch: {best}"


def test_a_network_without_held_out_votes_has_one_axis() -> None:
    history = pd.DataFrame({"loss": [2.0, 1.0], "validation": np.nan}, index=[1, 2])
    assert len(plot.training(history).figure.axes) == 1


def test_what_cannot_be_drawn_is_refused(made: Simulation) -> None:
    for given, message in (
        (MajorityVote().fit(made.crowd), "history_ or trace_, or one of these; got MajorityVote"),
        (pd.DataFrame({"accuracy": [1.0]}), "missing loss"),
        ([], "one number per iteration"),
        ([[1.0]], "one number per iteration"),
    ):
        with pytest.raises((InputError, UsageError), match=message):
            plot.training(given)
    assert pyplot.get_fignums() == []
