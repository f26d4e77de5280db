from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import CoupledView, Crowd, MajorityVote, kernels
from wisecrowd.base import checkpoints
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.em.priors import estimate_crowd_confusion, estimate_prior_strength
from wisecrowd.errors import UsageError
from wisecrowd.evaluate.metrics import accuracy
from wisecrowd.learn import coupled_view
from wisecrowd.learn.coupled_view import _ViewLoss, aggregate_by_naive_bayes
from wisecrowd.nn.deep_training import build_twin
from wisecrowd.simulate import Simulation

torch = pytest.importorskip("torch")


def views_of(model: CoupledView, X: pd.DataFrame, crowd: Crowd, gold: Any = None, warmup: int = 5) -> _ViewLoss:
    job, network = model._prepare_job(X.to_numpy(), crowd, gold)
    return _ViewLoss((network, build_twin(job, network, 7)), job.training_set, model.beta, warmup)


def at_epoch(number: int, by_features: Any) -> Any:
    """As much of a trainer as the loss looks at."""
    return SimpleNamespace(history=[None] * number, model=SimpleNamespace(network_labels=by_features))


def losses(views: _ViewLoss, tasks: Any, wanted: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    found = []
    for network in views.networks:
        logits = network(views.training_set.inputs[tasks])[1].detach().numpy()
        found.append(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(tasks)), wanted])
    return found


@pytest.fixture
def model() -> CoupledView:
    return CoupledView(hidden=5, dropout=0.0, precision="double", device="cpu", beta=1.0)


def test_the_aggregator_is_naive_bayes(made: Simulation) -> None:
    crowd, expected = made.crowd, compute_vote_shares(made.crowd)
    expected[::3] = 0  # these do not count
    found = aggregate_by_naive_bayes(crowd, expected)
    tally = kernels.tally(crowd.layout, expected)
    toward = estimate_crowd_confusion(tally, crowd.pairs)
    strength = estimate_prior_strength(tally, crowd.pairs, toward)
    assert crowd.worker is not None
    counts = np.zeros((12, 3, 3))
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        counts[worker, :, label] += expected[task]
    pi = (counts + strength * toward) / (counts.sum(axis=2, keepdims=True) + strength)
    wanted = np.ones((150, 3))
    for task, worker, label in zip(crowd.task, crowd.worker, crowd.label, strict=True):
        wanted[task] *= pi[worker, :, label]
    assert found == pytest.approx(wanted / wanted.sum(axis=1, keepdims=True))
    known = np.full(150, -1, dtype=np.int32)
    known[0] = 2
    assert aggregate_by_naive_bayes(crowd, expected, known)[0].tolist() == [0, 0, 1]


@pytest.mark.parametrize(("epoch", "part"), [(1, 0.4), (4, 1.0)])
def test_each_network_learns_what_has_the_smallest_loss_of_the_other(
    epoch: int, part: float, model: CoupledView, X: pd.DataFrame, made: Simulation
) -> None:
    views = views_of(model, X, made.crowd)
    views.doubt = 0.3
    labels = views.first_posterior.argmax(axis=1)
    tasks = torch.arange(20, 40)
    found = float(views(tasks, at_epoch(epoch, None)).detach())
    mine, others = losses(views, tasks, labels[20:40])
    number = round((1 - part * 0.3) * 20)
    weight = 150 / np.bincount(labels, minlength=3) / 3
    wanted = 0.0
    for one, other in ((mine, others), (others, mine)):
        kept = np.argsort(other)[:number]
        share = weight[labels[20:40][kept]]
        wanted += (share * one[kept]).sum() / share.sum()
    assert found == pytest.approx(wanted)


def test_what_networks_say_changes_where_they_agree_and_the_aggregator_counts_what_it_believes(
    model: CoupledView, X: pd.DataFrame, made: Simulation
) -> None:
    views = views_of(model, X, made.crowd)
    views.doubt = 0.25
    before = torch.from_numpy(views.first_posterior.argmax(axis=1))
    by_features = before.clone()
    views._relabel(by_features)
    with torch.no_grad():
        first, second = (network(views.training_set.inputs)[1].argmax(dim=1) for network in views.networks)
    agree = first == second
    assert 0 < int(agree.sum()) < 150
    assert (by_features[agree] == first[agree]).all()
    assert (by_features[~agree] == before[~agree]).all()
    said = by_features.numpy()
    certain = aggregate_by_naive_bayes(made.crowd, np.eye(3)[said])[np.arange(150), said]
    kept = np.argsort(-certain, kind="stable")[: round(0.75 * 150)]
    expected = np.zeros((150, 3))
    expected[kept, said[kept]] = 1
    assert (views.vote_labels.numpy() == aggregate_by_naive_bayes(made.crowd, expected).argmax(axis=1)).all()


def test_known_truth_is_said_by_both_sides_and_always_kept(
    model: CoupledView, X: pd.DataFrame, made: Simulation
) -> None:
    assert made.crowd.classes is not None
    place = made.crowd.classes.get_indexer(pd.Index(made.truth)).astype(np.int32)
    gold = np.where(np.arange(150) < 30, (place + 1) % 3, -1).astype(np.int32)  # what nobody would believe
    views = views_of(model, X, made.crowd, gold)
    views.doubt = 0.9
    by_features = torch.from_numpy(views.first_posterior.argmax(axis=1))
    views._relabel(by_features)
    assert (by_features[:30].numpy() == gold[:30]).all()
    assert (views.vote_labels[:30].numpy() == gold[:30]).all()
    tasks = torch.tensor([0, 1, *range(100, 118)])
    wanted = views.vote_labels[tasks].numpy()
    one, other = losses(views, tasks, wanted)
    weight = views.class_weight.numpy()[wanted[:2]]
    assert views._count_selected(20) == 2  # the least that is kept: both known ones
    kept = sum((weight * each[:2]).sum() / weight.sum() for each in (one, other))
    views.warmup = 20
    assert float(views(tasks, at_epoch(9, by_features)).detach()) != pytest.approx(kept)  # warm-up
    views.warmup, views.epoch = 0, 9
    assert float(views(tasks, at_epoch(9, by_features)).detach()) == pytest.approx(kept)


def test_the_doubt_is_the_aggregators(X: pd.DataFrame, made: Simulation) -> None:
    fitted = CoupledView(epochs=2, hidden=8).fit(X, made.crowd)
    first = aggregate_by_naive_bayes(made.crowd, compute_vote_shares(made.crowd))
    assert fitted.doubt_ == pytest.approx(1 - first.max(axis=1).mean())


def test_it_beats_the_votes_and_answers_for_workers(X: pd.DataFrame, made: Simulation) -> None:
    fitted = CoupledView(epochs=30, learning_rate=3e-3).fit(X, made.crowd)
    assert accuracy(made.truth, fitted) > accuracy(made.truth, MajorityVote().fit(made.crowd)) + 0.02
    assert fitted.score(X, made.truth) > 0.8
    assert made.crowd.workers is not None
    answers = fitted.predict_worker_proba(X, [made.crowd.workers[2], "a stranger"])
    assert answers.shape == (150, 2, 3)
    assert answers.sum(axis=2) == pytest.approx(1)
    assert answers[:, 0] == pytest.approx(fitted.predict_proba(X) @ fitted.confusion_[2])
    both = [fitted._network_class_probs(network, X.to_numpy()) for network in (fitted.network_, fitted.twin_)]
    assert fitted.predict_proba(X) == pytest.approx((both[0] + both[1]) / 2)
    assert not np.allclose(both[0], both[1])


def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(
    X: pd.DataFrame, made: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "TIME_SHARE", 1e9)  # keep every epoch
    settings: dict[str, Any] = {"epochs": 6, "hidden": 8, "warmup": 2}
    whole = CoupledView(**settings).fit(X, made.crowd)
    loss, calls = coupled_view._ViewLoss.__call__, []

    def killed(self: _ViewLoss, *rest: Any, **options: Any) -> Any:
        calls.append(0)
        if len(calls) == 14:
            raise KeyboardInterrupt
        return loss(self, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(coupled_view._ViewLoss, "__call__", killed)
        with pytest.raises(KeyboardInterrupt):
            CoupledView(**settings, checkpoint=str(tmp_path)).fit(X, made.crowd)
    again = CoupledView(**settings, checkpoint=str(tmp_path)).fit(X, made.crowd)
    assert again.posterior_.tobytes() == whole.posterior_.tobytes()
    assert len(calls) == 14


@pytest.mark.parametrize("wrong", [{"beta": -1.0}, {"warmup": -1}])
def test_options_are_checked(wrong: dict[str, Any], X: pd.DataFrame, made: Simulation) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} must be 0 or more"):
        CoupledView(**wrong).fit(X, made.crowd)
