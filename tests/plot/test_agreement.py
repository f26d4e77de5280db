"""Heatmap of worker agreement: cells, numbers and scale are those of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd, plot, worker_agreement
from wisecrowd.diagnose import Diagnosis
from wisecrowd.errors import InputError, UsageError
from wisecrowd.simulate import Simulation


def test_cells_are_those_of_the_table(made: Simulation, found: Diagnosis) -> None:
    result = worker_agreement(made.crowd)
    for ax in (plot.agreement(result), plot.agreement(made.crowd), plot.agreement(found)):
        image: Any = ax.images[0]
        drawn = image.get_array().filled(np.nan)
        np.testing.assert_array_equal(drawn, result.matrix().to_numpy())
        assert image.get_clim() == (result.pairs["agreement"].min(), result.pairs["agreement"].max())
        assert [tick.get_text() for tick in ax.get_yticklabels()] == result.matrix().index.tolist()
        assert not ax.texts


def test_few_workers_have_percentages_and_counts() -> None:
    votes = [(task, worker, task % 2 if worker != "c" else 0) for task in range(4) for worker in "abc"]
    ax: Any = plot.agreement(Crowd.from_triples([*votes, (9, "d", 1)]))
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    assert texts[names.index("a"), names.index("b")] == "100%\n4"
    assert texts[names.index("a"), names.index("c")] == "50%\n4"
    assert len(texts) == 6
    assert np.ma.getmaskarray(ax.images[0].get_array())[names.index("d")].all()


def test_names_of_workers_are_literal(drawn: Any) -> None:
    ax: Any = plot.agreement(Crowd.from_triples([("t", "$x$", 0), ("t", "y_1^2", 0)]))
    assert {"$x$", "y_1^2"} <= {text.get_text() for text in drawn.texts(ax.figure)}


def test_the_most_active_workers_are_drawn(made: Simulation) -> None:
    assert len(plot.agreement(made.crowd, workers=5).get_yticklabels()) == 5


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(InputError, match="no two workers have a common task"):
        plot.agreement(Crowd.from_triples([("t1", "a", 0), ("t2", "b", 0)]))
    with pytest.raises(UsageError, match="expected a WorkerAgreement"):
        plot.agreement([1, 2])
