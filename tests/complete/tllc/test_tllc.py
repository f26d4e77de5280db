"""TLLC: confident tasks, pairs, one network for each worker, and what is filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wisecrowd import TLLC, Crowd, DawidSkene, MajorityVote, find
from wisecrowd.base.completer import WorkerLabelProbs
from wisecrowd.complete.tllc._confident_tasks import select_confident_tasks
from wisecrowd.complete.tllc._random_keys import compute_task_keys
from wisecrowd.data.alignment import encode_truth
from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.evaluate import metrics
from wisecrowd.io.datasets import Dataset

torch = pytest.importorskip("torch")

from wisecrowd.complete.tllc import _siamese_networks, tllc  # noqa: E402
from wisecrowd.complete.tllc._siamese_networks import (  # noqa: E402
    NetworkVotes,
    StackedNetworks,
    compute_pair_gradient,
    train_networks,
)

DOUBLE: dict[str, Any] = {"precision": "double", "hidden": 16}


def clusters(n_tasks: int = 90, n_classes: int = 3, spread: float = 0.2, seed: int = 0) -> tuple[Any, pd.DataFrame]:
    """True classes, and features in which they lie apart."""
    rng = np.random.default_rng(seed)
    z = np.arange(n_tasks) % n_classes
    X = 3 * np.eye(n_classes, 6)[z] + spread * rng.normal(size=(n_tasks, 6))
    return z, pd.DataFrame(X, index=[f"t{i:03d}" for i in range(n_tasks)])


def voted(z: Any, X: pd.DataFrame, policies: list[Any], density: float = 0.4, seed: int = 0) -> Crowd:
    """Each worker says, of some tasks, what their policy makes of the true class."""
    rng = np.random.default_rng(seed)
    task, worker = np.nonzero(rng.random((len(z), len(policies))) < density)
    label = np.array(policies)[worker, z[task]]
    return Crowd.from_codes(task, worker, label, tasks=X.index, workers=range(len(policies)), classes=["a", "b", "c"])


HONEST = [0, 1, 2]


@pytest.fixture(scope="module")
def noisy() -> tuple[Crowd, pd.DataFrame]:
    z, X = clusters(spread=1.5)
    rng = np.random.default_rng(1)
    task, worker = np.nonzero(rng.random((90, 8)) < 0.4)
    label = np.where(rng.random(len(task)) < 0.7, z[task], rng.integers(3, size=len(task)))
    return Crowd.from_codes(task, worker, label, tasks=X.index, workers=range(8), classes=["a", "b", "c"]), X


# ---------------------------------------------------------------------- confident tasks


def test_confident_tasks_by_hand() -> None:
    votes = np.array([[4, 0, 0], [3, 1, 0], [2, 1, 1], [0, 2, 0], [1, 2, 1], [1, 1, 0], [0, 0, 0]], dtype=float)
    draws = np.zeros((7, 3))
    draws[5, 1] = 0.5  # the draw goes to the second class
    found = select_confident_tasks(votes, draws)
    assert found.majority.tolist() == [0, 0, 0, 1, 1, 1, -1]
    assert found.confidence.tolist() == [1, 0.75, 0.5, 1, 0.5, 0.5, 0]
    np.testing.assert_allclose(found.threshold, [0.75, 2 / 3, np.nan])
    assert found.selected.tolist() == [True, True, False, True, False, False, False]
    assert select_confident_tasks(votes, draws, select_all=True).selected.tolist() == [True] * 6 + [False]


def test_who_is_kept_is_confident_and_unanimous_tasks_are_kept() -> None:
    rng = np.random.default_rng(0)
    votes = rng.poisson(1.2, size=(300, 4)).astype(float)
    found = select_confident_tasks(votes, rng.random(votes.shape))
    some = votes.sum(axis=1) > 0
    assert (found.confidence[found.selected] >= found.threshold[found.majority[found.selected]] - 1e-9).all()
    assert found.selected[some & (found.confidence == 1)].all()
    assert 0 < found.selected.sum() < some.sum()
    assert (votes[some, found.majority[some]] == votes[some].max(axis=1)).all()


# ---------------------------------------------------------------------- pairs


def loss_by_hand(points: Any, labels: Any, valid: Any, balance: bool) -> Any:
    """Pair by pair."""
    total = torch.zeros((), dtype=points.dtype)
    for network in range(len(points)):
        terms: dict[bool, list[Any]] = {True: [], False: []}
        rows = np.flatnonzero(valid[network].numpy())
        for place, i in enumerate(rows):
            for j in rows[place + 1 :]:
                equal = bool(labels[network, i] == labels[network, j])
                away = (((points[network, i] - points[network, j]) ** 2).sum() + 1e-30) ** 0.5
                terms[equal].append((float(not equal) - away) ** 2)
        parts = [torch.stack(part).mean() for part in terms.values() if part]
        every = terms[True] + terms[False]
        total = total + (sum(parts) / len(parts) if balance else torch.stack(every).mean())
    return total


@pytest.mark.parametrize("balance", [False, True])
def test_gradients_are_those_of_the_loss(balance: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2, 6, 3, dtype=torch.float64, generator=generator)
    labels = torch.tensor([[0, 1, 0, 2, 1, 0], [0, 0, 1, 0, 1, 1]])
    valid = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    net = StackedNetworks(*(torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()
                   for shape in ((2, 3, 5), (2, 1, 5), (2, 5, 2), (2, 1, 2))))  # fmt: skip
    wanted = torch.autograd.grad(loss_by_hand(net.embed(rows), labels, valid, balance), net)
    with torch.no_grad():
        found = net.compute_gradients(rows, labels, valid, balance)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


def test_points_in_one_place_are_not_moved() -> None:
    same = torch.ones(1, 3, 2)
    slope = compute_pair_gradient(same, torch.tensor([[0, 1, 1]]), torch.ones(1, 3, dtype=torch.bool), False)
    assert slope.tolist() == torch.zeros(1, 3, 2).tolist()


def test_the_same_rows_for_all_networks_are_embedded_alike() -> None:
    torch_net = StackedNetworks(*(torch.randn(*shape) for shape in ((4, 3, 5), (4, 1, 5), (4, 5, 2), (4, 1, 2))))
    rows = torch.randn(7, 3)
    torch.testing.assert_close(torch_net.embed_shared(rows), torch_net.embed(rows.expand(4, 7, 3)))


def test_each_network_is_taught_as_if_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(40, 4)))
    counts = np.array([2, 17, 9, 30])
    network = np.repeat(np.arange(4), counts)
    lessons = NetworkVotes(
        network, rng.integers(40, size=58), rng.integers(3, size=58), rng.integers(2**60, size=4).astype(np.uint64),
        compute_task_keys(rows.numpy()),
    )  # fmt: skip
    start = StackedNetworks.initialize(4, 6, 2, torch.float64)

    def all_of(lessons: NetworkVotes) -> dict[int, StackedNetworks]:
        found = {}
        for networks, group in train_networks(
            start, rows, lessons, epochs=3, batch_size=8, learning_rate=0.01, balance=False, seed=1
        ):
            found |= {int(one): StackedNetworks(*(part[place] for part in group)) for place, one in enumerate(networks)}
        return found

    together = all_of(lessons)
    monkeypatch.setattr(_siamese_networks, "GROUP_FLOATS", 1)
    for one, alone in all_of(lessons).items():
        for mine, theirs in zip(together[one], alone, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
        assert not torch.equal(together[one].weight, start.weight[0])


# ---------------------------------------------------------------------- workers


def test_what_is_told_apart_is_filled_in_rightly_and_helps() -> None:
    z, X = clusters()
    crowd = voted(z, X, [HONEST] * 8, density=0.25)
    filled = TLLC(fill_weight=1, pretrain_epochs=20).complete(crowd, X)
    assert filled.n_votes > 1.5 * crowd.n_votes
    assert (filled.label == z[filled.task]).all()
    truth = pd.Series(np.array(["a", "b", "c"])[z], index=X.index)
    for kind in (MajorityVote, DawidSkene):
        before, after = (metrics.accuracy(truth, kind().fit(votes)) for votes in (crowd, filled))
        assert after > before  # tasks without votes got some


def test_real_votes_stay_and_nobody_says_what_they_never_said(noisy: tuple[Crowd, pd.DataFrame]) -> None:
    crowd, X = noisy
    only = crowd.take((crowd.worker_codes != 0) | (crowd.label != 2))  # the first worker does without a class
    for rule in tllc.RULES:
        filled = TLLC(rule=rule, fill_weight=1).complete(only, X)
        assert filled.select_observed() == only
        assert filled.n_votes > only.n_votes
        assert not ((filled.worker_codes == 0) & (filled.label == 2)).any()


def test_a_worker_who_swaps_classes_goes_on_swapping() -> None:
    z, X = clusters(n_tasks=150)
    swapped = [1, 0, 2]
    crowd = voted(z, X, [swapped, *[HONEST] * 7])
    model = TLLC(rule="all").fit(crowd, X)
    said = model.predict_worker_proba().argmax(axis=2)
    assert (said[:, 0] == np.array(swapped)[z]).mean() > 0.9
    assert (said[:, 1] == z).mean() > 0.9


def test_rules_differ_in_what_they_fill(noisy: tuple[Crowd, pd.DataFrame]) -> None:
    crowd, X = noisy
    fitted = TLLC(**DOUBLE).fit(crowd, X)
    tasks, workers = np.arange(90), np.arange(8)

    def by(rule: str) -> WorkerLabelProbs:
        fitted.rule = rule  # type: ignore[assignment]
        return fitted._worker_label_probs(tasks, workers)

    nearest, inside, first, everywhere = (by(rule) for rule in ("nearest", "nearest_inside", "first", "all"))
    assert everywhere.fillable is not None
    assert nearest.fillable is not None
    assert inside.fillable is not None
    assert everywhere.fillable.all()
    assert (inside.fillable | ~nearest.fillable).all()
    assert nearest.fillable.sum() < inside.fillable.sum()
    np.testing.assert_array_equal(inside.fillable, first.fillable)
    away = fitted._compute_distances(torch.from_numpy(fitted.features_), workers)
    within = away <= fitted.radius_ + 1e-9
    for i, r in np.argwhere(inside.fillable):
        balls = np.flatnonzero(within[i, r])
        assert inside.proba[i, r].argmax() == balls[away[i, r, balls].argmin()]
        assert first.proba[i, r].argmax() == balls[0]
    for answers in (nearest, inside, first, everywhere):
        np.testing.assert_allclose(answers.proba.sum(axis=2), 1)


def test_the_first_ball_alone_depends_on_the_order_of_classes(noisy: tuple[Crowd, pd.DataFrame]) -> None:
    crowd, X = noisy
    turned = Crowd.from_codes(
        crowd.task, crowd.worker, 2 - crowd.label, tasks=crowd.tasks, workers=crowd.workers, classes=["c", "b", "a"]
    )
    for rule in tllc.RULES:
        one, other = (TLLC(rule=rule, **DOUBLE).fit(votes, X).predict_worker_proba() for votes in (crowd, turned))
        same = bool(np.abs(one - other[:, :, ::-1]).max() < 1e-6)
        assert same == (rule != "first")


def test_centres_and_radii_are_means(noisy: tuple[Crowd, pd.DataFrame]) -> None:
    crowd, X = noisy
    fitted = TLLC(**DOUBLE).fit(crowd, X)
    rows = torch.from_numpy(fitted.features_)
    for worker in range(8):
        arrays = (fitted.weight_, fitted.bias_, fitted.out_weight_, fitted.out_bias_)
        network = StackedNetworks.from_arrays(arrays, fitted.network_index_[[worker]])
        points = network.embed_shared(rows)[0].numpy()
        for label in range(3):
            own = points[crowd.task[(crowd.worker_codes == worker) & (crowd.label == label)]]
            centre = own.mean(axis=0)
            np.testing.assert_allclose(fitted.centre_[worker, label], centre)
            np.testing.assert_allclose(fitted.radius_[worker, label], np.linalg.norm(own - centre, axis=1).mean())


def test_no_epochs_are_no_network_of_ones_own(noisy: tuple[Crowd, pd.DataFrame]) -> None:
    crowd, X = noisy
    alike = TLLC(epochs=0, **DOUBLE).fit(crowd, X)
    assert (alike.network_index_ == 0).all()
    assert len(alike.weight_) == 1
    whole = TLLC(**DOUBLE).fit(crowd, X)
    np.testing.assert_array_equal(whole.weight_[0], alike.weight_[0])
    assert len(np.unique(whole.weight_.round(12), axis=0)) == 9
    fresh, other = (TLLC(epochs=0, pretrain_epochs=0, filtering=on, **DOUBLE).fit(crowd, X) for on in (True, False))
    np.testing.assert_array_equal(fresh.weight_, other.weight_)  # as they were drawn
    assert not np.array_equal(fresh.weight_, alike.weight_)


def test_workers_of_one_class_one_label_and_none() -> None:
    z, X = clusters()
    crowd = voted(z, X, [HONEST] * 4)
    rows = [(X.index[0], "single", "a"), *((X.index[i], "constant", "b") for i in range(20))]
    frame = pd.concat(
        [crowd.to_frame()[["task", "worker", "label"]], pd.DataFrame(rows, columns=["task", "worker", "label"])]
    )
    votes = Crowd.from_frame(
        frame.astype({"worker": str}),
        tasks=X.index,
        workers=[*"0123", "constant", "none", "single"],
        classes=["a", "b", "c"],
    )
    again = X.copy()
    again.loc["t005"] = X.loc["t000"]  # looks like the only task of one worker
    model = TLLC(**DOUBLE).fit(votes, again)
    assert model.network_index_.tolist() == [1, 2, 3, 4, 0, 0, 0]
    filled = model.fill()
    new = filled.to_frame().query("not observed")
    assert new.query("worker == 'single'")[["task", "label"]].to_numpy().tolist() == [["t005", "a"]]
    assert set(new.query("worker == 'constant'")["label"]) == {"b"}
    assert 0 < (new["worker"] == "constant").sum() < 70  # not the whole column
    assert (new["worker"] != "none").all()
    np.testing.assert_allclose(model.predict_worker_proba(workers=["none"]), 1 / 3)


def test_where_nobody_agrees_on_two_classes_there_is_no_network_of_all() -> None:
    _, X = clusters(n_tasks=6)
    crowd = Crowd.from_triples([(task, worker, "a") for task in X.index for worker in "xy"], classes=["a", "b"])
    with pytest.warns(DataWarning, match="no two classes"):
        model = TLLC().fit(crowd, X)
    assert (model.predict_worker_proba().argmax(axis=2) == 0).all()


def test_two_valued_features_stay_as_they_are_and_others_are_standardised() -> None:
    X = np.array([[0, 1.0, 7, 5], [0, 2.0, 3, 5], [1, 3.0, 3, 5]])
    found = tllc._scale_features(X)
    np.testing.assert_allclose(found[:, 0], [0, 0, 1])
    np.testing.assert_allclose(found[:, 2], [1, 0, 0])
    np.testing.assert_allclose(found[:, 1], [-(1.5**0.5), 0, 1.5**0.5])
    np.testing.assert_allclose(found[:, 3], 0)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"rule": "last"}, "rule"),
        ({"embedding": 0}, "embedding"),
        ({"hidden": 0}, "hidden"),
        ({"batch_size": 1}, "batch_size"),
        ({"epochs": -1}, "epochs"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"sharpness": -1.0}, "sharpness"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"precision": "half"}, "precision"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    setting: dict[str, Any], words: str, noisy: tuple[Crowd, pd.DataFrame]
) -> None:
    with pytest.raises(UsageError, match=words):
        TLLC(**setting).fit(*noisy)


def test_it_asks_for_features(noisy: tuple[Crowd, pd.DataFrame]) -> None:
    with pytest.raises(UsageError, match="features"):
        TLLC().fit(noisy[0])


# ---------------------------------------------------------------------- the paper's crowds


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "shape", "n_votes", "vote", "kept"),
    [
        ("income", (600, 67, 2), 6000, 0.7208, 0.809),
        ("leaves", (384, 83, 6), 3840, 0.6428, 0.877),
        ("music_genre_ceka", (700, 44, 10), 2945, 0.7042, 0.860),
    ],
)
def test_filtering_raises_the_accuracy_of_votes_as_in_the_paper(
    name: str, shape: tuple[int, ...], n_votes: int, vote: float, kept: float, dataset: Callable[[str], Dataset]
) -> None:
    crowd, truth = dataset(name).crowd, dataset(name).truth
    assert (*crowd.shape, crowd.n_classes) == shape
    assert crowd.n_votes == n_votes
    z = encode_truth(truth, crowd)
    best = crowd.vote_counts == crowd.vote_counts.max(axis=1, keepdims=True)
    assert (best[np.arange(len(z)), z] / best.sum(axis=1)).mean() == pytest.approx(
        vote, abs=2e-4
    )  # expected over draws
    scores = []
    for seed in range(10):
        found = select_confident_tasks(crowd.vote_counts, np.random.default_rng(seed).random(crowd.vote_counts.shape))
        scores.append((found.majority == z)[found.selected].mean())
    assert np.mean(scores) == pytest.approx(kept, abs=0.01)


def test_the_rival_fills_every_cell_and_votes_where_workers_are_alike() -> None:
    z, X = clusters()
    crowd = voted(z, X, [HONEST] * 4)
    crowd = crowd.take(crowd.votes_per_task[crowd.task] > 0)
    rival: Any = find("wslc")
    filled = rival(fill_weight=1).complete(crowd, X)
    labelled = crowd.votes_per_task > 0
    assert np.bincount(filled.task, minlength=90)[labelled].min() == 4
    assert (filled.label == z[filled.task])[labelled[filled.task]].all()


# ---------------------------------------------------------------------- embeddings, and what the theorems say


def separation(points: Any, z: Any) -> float:
    """Distance between the means of classes by the mean distance from them."""
    means = np.stack([points[z == k].mean(axis=0) for k in range(3)])
    inside = np.linalg.norm(points - means[z], axis=1).mean()
    return float(np.linalg.norm(means[:, None] - means[None], axis=2).sum() / 6 / inside)


def test_tasks_are_embedded_by_the_network_of_a_worker(noisy: tuple[Crowd, pd.DataFrame]) -> None:
    crowd, X = noisy
    model = TLLC(**DOUBLE, pretrain_epochs=10, epochs=5).fit(crowd, X)
    mine = model.embed(3)
    assert mine.index.equals(crowd.tasks)
    code = np.flatnonzero((crowd.worker_codes == 3) & (crowd.label == 0))
    np.testing.assert_allclose(mine.to_numpy()[crowd.task[code]].mean(axis=0), model.centre_[3, 0])
    assert not mine.equals(model.embed())
    tuned = TLLC(**DOUBLE, pretrain_epochs=10, epochs=0).fit(crowd, X)
    pd.testing.assert_frame_equal(tuned.embed(3), model.embed())  # no fine-tuning leaves the shared network
    with pytest.raises(InputError, match="no worker 'nobody'"):
        model.embed("nobody")


@pytest.fixture(scope="module")
def scarce() -> tuple[Any, Crowd, pd.DataFrame]:
    """Few and partly wrong votes of many workers on classes that features tell apart."""
    z, X = clusters(n_tasks=150, spread=1.0)
    rng = np.random.default_rng(2)
    task, worker = np.nonzero(rng.random((150, 25)) < 0.12)
    label = np.where(rng.random(len(task)) < 0.75, z[task], rng.integers(3, size=len(task)))
    return z, Crowd.from_codes(task, worker, label, tasks=X.index, workers=range(25), classes=["a", "b", "c"]), X


def test_the_source_is_better_than_all_tasks(scarce: tuple[Any, Crowd, pd.DataFrame]) -> None:
    z, crowd, X = scarce  # theorem 1
    model = TLLC(hidden=1, pretrain_epochs=0, epochs=0).fit(crowd, X)
    right = model.majority_ == z
    assert right[model.confident_].mean() > right.mean() + 0.05
    assert all(right[model.confident_ & (z == k)].mean() >= right[z == k].mean() for k in range(3))


def test_transfer_separates_the_true_classes(scarce: tuple[Any, Crowd, pd.DataFrame]) -> None:
    z, crowd, X = scarce  # theorem 2
    with_transfer, without = (
        TLLC(**DOUBLE, pretrain_epochs=epochs, pretrain_rate=3e-3).fit(crowd, X) for epochs in (30, 0)
    )
    scores = np.array(
        [[separation(model.embed(worker).to_numpy(), z) for worker in range(10)] for model in (with_transfer, without)]
    )
    assert (scores[0] > 1.2 * scores[1]).all()


@pytest.mark.parametrize("noise", [0.15, 0.3])
def test_noise_in_labels_moves_classes_nearer_but_not_together(noise: float) -> None:
    # Theorem 3 adds Gaussian noise to the targets of pairs, which leaves the minimum of the loss in its place. Wrong labels give
    # noise whose mean is not zero: the classes are nearer to each other, and the class of the nearest centre stays the true one.
    z, X = clusters(n_tasks=120, spread=0.5)
    rng = np.random.default_rng(0)
    wrong = np.where(rng.random(120) < noise, (z + rng.integers(1, 3, size=120)) % 3, z)
    votes = [Crowd.from_codes(np.arange(120), np.zeros(120, int), label, tasks=X.index, workers=[0], classes=[*"abc"])
             for label in (z, wrong)]  # fmt: skip
    models = [TLLC(**DOUBLE, pretrain_epochs=40, pretrain_rate=1e-2, epochs=0).fit(crowd, X) for crowd in votes]
    gaps = []
    for model in models:
        points = model.embed().to_numpy()
        means = np.stack([points[z == k].mean(axis=0) for k in range(3)])
        nearest = np.linalg.norm(points[:, None] - means, axis=2).argmin(axis=1)
        assert (nearest == z).mean() > 0.95
        gaps.append(np.linalg.norm(means[:, None] - means[None], axis=2).sum() / 6)
    assert 0.1 < gaps[1] < gaps[0]
