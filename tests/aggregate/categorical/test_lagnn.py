from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd import LAGNN, Crowd, MajorityVote, load_dataset, simulate_crowd
from wisecrowd.errors import MissingExtra, UsageError
from wisecrowd.evaluate.metrics import accuracy

MIXED = ["expert"] * 6 + ["spammer"] * 10


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_torch(name: str, *rest: Any, **options: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[learn\]"):
        LAGNN().fit(Crowd.from_triples([("t", "w", "a")]))


def test_it_follows_experts_where_spammers_outnumber_them() -> None:
    pytest.importorskip("torch")
    made = simulate_crowd(300, 16, 3, votes_per_task=6, workers=MIXED, random_state=0)
    learnt = accuracy(made.truth, LAGNN().fit(made.crowd))
    assert learnt > accuracy(made.truth, MajorityVote().fit(made.crowd)) + 0.05


def test_truth_helps_the_tasks_whose_truth_is_not_known() -> None:
    pytest.importorskip("torch")
    made = simulate_crowd(300, 16, 3, votes_per_task=4, workers=MIXED, random_state=1)
    rest = made.truth[100:]
    alone = accuracy(rest, LAGNN().fit(made.crowd))
    assert accuracy(rest, LAGNN().fit(made.crowd, truth=made.truth[:100])) > alone


def test_before_training_it_is_about_the_majority_vote() -> None:
    pytest.importorskip("torch")
    crowd = Crowd.from_triples([(t, f"{t}-{w}", "ab"[w > 1]) for t in range(4) for w in range(5)])
    single = crowd.take(np.flatnonzero(np.diff(crowd.task, prepend=-1)))  # one voter a task: nothing to learn from
    fitted = LAGNN().fit(single)
    assert fitted.n_iter_ == 0
    assert (fitted.labels_ == MajorityVote().fit(single).labels_).all()


def test_training_lowers_the_loss_and_leaves_torch_as_it_was() -> None:
    torch = pytest.importorskip("torch")
    crowd = simulate_crowd(100, 10, 3, votes_per_task=5, random_state=2).crowd
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    fitted = LAGNN().fit(crowd)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads
    assert fitted.trace_[-1] > fitted.trace_[0]
    assert not np.array_equal(fitted.posterior_, LAGNN(random_state=1).fit(crowd).posterior_)


@pytest.mark.parametrize("odd", [{"rounds": 0}, {"hidden": 0}, {"max_iter": 0}, {"confident": 0}, {"confident": 2}])
def test_refusals(odd: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        LAGNN(**odd).fit(Crowd.from_triples([("t", "w", "a")]))
    with pytest.raises(UsageError, match="leave start out"):
        LAGNN().fit(Crowd.from_triples([("t", "w", "a")]), start=np.ones((1, 1)))


@pytest.mark.data
def test_music_genres(data_folder: Path) -> None:
    """No published figure could be read; it should at least know better than the majority here."""
    pytest.importorskip("torch")
    data = load_dataset(data_folder / "music_genre", duplicates="distinct")
    assert accuracy(data.truth, LAGNN().fit(data.crowd)) > accuracy(data.truth, MajorityVote().fit(data.crowd)) + 0.03
