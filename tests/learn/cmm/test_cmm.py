"""The mixture as a learner: what must hold of it, what it finds, and what it refuses."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone

from wisecrowd import CMM, Crowd, Raykar, load
from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.evaluate.metrics import confusion_divergence
from wisecrowd.learn.cmm._confusion_mixture import ConfusionMixture
from wisecrowd.learn.cmm.cmm import _hide_votes
from wisecrowd.simulate import GroupedSimulation, assign_worker_per_vote, simulate_gaussian_groups

Array = NDArray[np.float64]


def crowd_of(votes: Array) -> Crowd:
    """A crowd without ids that has these counts."""
    task, label = np.nonzero(votes)
    return Crowd.from_codes(task, None, label, tasks=range(len(votes)), workers=None, classes=range(votes.shape[1]),
                 weight=votes[task, label], duplicates="keep")  # fmt: skip


@pytest.fixture(scope="module")
def gaussian() -> GroupedSimulation:
    return simulate_gaussian_groups(n_workers=60, n_tasks=900, random_state=3)


# ---------------------------------------------------------------------- what must hold


def test_perfect_votes_give_the_identity_and_the_supervised_classifier(gaussian: GroupedSimulation) -> None:
    z = gaussian.crowd.classes.get_indexer(pd.Index(gaussian.truth))  # type: ignore[union-attr]
    X = gaussian.features.to_numpy()  # type: ignore[union-attr]
    model = CMM(n_groups=2).fit(X, crowd_of(np.eye(3)[z] * 3))
    assert np.abs(model.crowd_confusion_ - np.eye(3)).max() < 0.02
    supervised = Logistic().fit(X, np.eye(3)[z], np.full(len(z), 3.0)).predict_proba(X)
    assert (model.predict(X) == supervised.argmax(axis=1)).mean() > 0.995


def test_who_voted_does_not_matter(gaussian: GroupedSimulation) -> None:
    fits = [
        CMM().fit(gaussian.features, crowd)
        for crowd in (gaussian.crowd, gaussian.crowd.drop_workers(), assign_worker_per_vote(gaussian.crowd))
    ]
    for other in fits[1:]:
        assert np.array_equal(other.posterior_, fits[0].posterior_)
        assert np.array_equal(other.group_confusion_, fits[0].group_confusion_)
    assert fits[1].confusion_.shape == (1, 3, 3)
    np.testing.assert_allclose(fits[1].confusion_[0], fits[1].crowd_confusion_)
    assert fits[2].worker_groups_.shape == (gaussian.crowd.n_votes, 3)


def test_doubling_every_vote_changes_nothing_without_priors(gaussian: GroupedSimulation) -> None:
    crowd, X = gaussian.crowd, gaussian.features
    double = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=crowd.workers,
                   classes=crowd.classes, weight=np.full(crowd.n_votes, 2.0))  # fmt: skip
    once = CMM(n_groups=2, smoothing=0.0, l2=1.0).fit(X, crowd)
    twice = CMM(n_groups=2, smoothing=0.0, l2=2.0).fit(X, double)
    np.testing.assert_allclose(once.predict_proba(X), twice.predict_proba(X), atol=1e-2)
    np.testing.assert_allclose(once.group_confusion_, twice.group_confusion_, atol=1e-2)


@pytest.mark.parametrize("tied", ["no", "worker"])
def test_tasks_classes_and_workers_can_be_renamed(gaussian: GroupedSimulation, tied: Any) -> None:
    crowd, features = gaussian.crowd, gaussian.features
    assert crowd.classes is not None
    assert crowd.worker is not None
    assert crowd.workers is not None
    assert features is not None
    rng = np.random.default_rng(0)
    task, label, worker = (rng.permutation(n) for n in (crowd.n_tasks, crowd.n_classes, crowd.n_workers))
    moved = Crowd.from_codes(task[crowd.task], worker[crowd.worker], label[crowd.label], tasks=range(crowd.n_tasks),
                  workers=range(crowd.n_workers), classes=range(crowd.n_classes))  # fmt: skip
    X = np.empty(features.shape)
    X[task] = features.to_numpy()
    before, after = CMM(tied=tied).fit(features, crowd), CMM(tied=tied).fit(X, moved)
    np.testing.assert_allclose(after.posterior_[np.ix_(task, label)], before.posterior_, atol=1e-4)
    np.testing.assert_allclose(after.group_weight_, before.group_weight_, atol=1e-4)
    np.testing.assert_allclose(after.crowd_confusion_[np.ix_(label, label)], before.crowd_confusion_, atol=1e-4)
    np.testing.assert_allclose(after.membership_[worker], before.membership_, atol=1e-3)


def test_groups_are_sorted_and_may_come_in_any_order(gaussian: GroupedSimulation) -> None:
    model = CMM(n_groups=4).fit(gaussian.features, gaussian.crowd)
    assert (np.diff(model.group_weight_) <= 0).all()
    assert model.groups_["n_votes"].sum() == pytest.approx(gaussian.crowd.n_votes)
    groups = ConfusionMixture(model.group_weight_, model.group_confusion_)
    turned = ConfusionMixture(groups.weight[::-1], groups.confusion[::-1])
    f = model.predict_proba(gaussian.features)
    np.testing.assert_allclose(turned.pooled, groups.pooled)
    np.testing.assert_allclose(
        turned.worker_memberships(f, gaussian.crowd)[:, ::-1], groups.worker_memberships(f, gaussian.crowd)
    )


def test_the_pooled_matrix_is_recovered() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    f = softmax(X @ np.array([[3.0, -2.0, 0.0], [0.0, 2.0, -3.0]]), axis=1)
    said = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]])
    cumulative = (f @ said).cumsum(axis=1)  # each vote has a class of its own, as the model says
    label = (rng.random((len(X), 4))[:, :, None] > cumulative[:, None, :2]).sum(axis=2)
    votes = (label[:, :, None] == np.arange(3)).sum(axis=1).astype(np.float64)
    model = CMM(n_groups=2, l2=1e-3).fit(X, crowd_of(votes))
    assert np.abs(model.crowd_confusion_ - said).max() < 0.03
    assert np.abs(model.predict_proba(X) - f).mean() < 0.02


def test_known_groups_tell_their_workers() -> None:
    made = simulate_gaussian_groups(n_workers=120, random_state=1)
    assert made.features is not None
    assert made.truth is not None
    f = Logistic().fit(made.features.to_numpy(), np.eye(3)[made.truth.factorize(sort=True)[0]])
    member = ConfusionMixture(made.weight, made.confusion).worker_memberships(
        f.predict_proba(made.features.to_numpy()), made.crowd
    )
    busy = made.crowd.votes_per_worker >= 50
    assert busy.sum() > 100
    assert (member.argmax(axis=1) == made.group.to_numpy())[busy].mean() > 0.95


def test_accuracy_does_not_depend_on_the_number_of_workers() -> None:
    few, many = (simulate_gaussian_groups(n_workers=number, random_state=0) for number in (100, 10_000))
    scores = {
        (kind, name): made_by().fit(made.features, made.crowd).score(made.test_features, made.test_truth)
        for kind, made_by in (("CMM", CMM), ("Raykar", Raykar))
        for name, made in (("few", few), ("many", many))
    }
    assert abs(scores["CMM", "few"] - scores["CMM", "many"]) < 0.02
    assert scores["CMM", "many"] > 0.92
    assert scores["Raykar", "many"] < scores["Raykar", "few"] - 0.1


def test_divergence_from_the_identity() -> None:
    uniform = np.full((8, 8), 1 / 8)
    assert confusion_divergence(np.eye(8), np.eye(8)) == 0
    assert confusion_divergence(np.eye(8), uniform) == pytest.approx(0.717, abs=1e-3)
    assert confusion_divergence(uniform, np.eye(8)) == confusion_divergence(np.eye(8), uniform)


# ---------------------------------------------------------------------- tied by worker


def test_workers_tell_groups_apart_where_votes_cannot() -> None:
    made = simulate_gaussian_groups(n_workers=100, random_state=0)
    tied, loose = (CMM(tied=tied).fit(made.features, made.crowd) for tied in ("worker", "no"))

    def distance(model: CMM) -> float:
        orders = permutations(range(3))
        found = model.group_confusion_
        return min(float(confusion_divergence(found[list(order)], made.confusion).mean()) for order in orders)

    table = pd.crosstab(made.group, tied.workers_["group"])
    assert table.max(axis=0).sum() / table.to_numpy().sum() > 0.97
    assert distance(tied) < 0.01
    assert distance(loose) > 0.05
    # The votes say nothing against the wrong groups: the true ones, which have the same sum, are no more probable.
    assert float(confusion_divergence(loose.crowd_confusion_, made.pooled)) < 0.01
    f = loose.predict_proba(made.features)
    said = made.crowd.vote_counts * np.log(f @ loose.crowd_confusion_), made.crowd.vote_counts * np.log(f @ made.pooled)
    assert said[0].sum() >= said[1].sum()


def test_new_votes_find_their_groups(gaussian: GroupedSimulation) -> None:
    fresh = simulate_gaussian_groups(n_workers=40, n_tasks=400, random_state=9)
    crowd = fresh.crowd
    names_of_strangers = [f"new-{n}" for n in range(40)]
    strangers = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=crowd.tasks, workers=names_of_strangers,
                      classes=crowd.classes)  # fmt: skip
    tied = CMM(tied="worker").fit(gaussian.features, gaussian.crowd)
    names = pd.crosstab(tied.workers_["group"], gaussian.group).idxmax(axis=1)
    table = tied.assign(fresh.features, strangers)
    assert len(table) == crowd.n_votes
    np.testing.assert_allclose(table.sum(axis=1), 1)
    of_worker = table.groupby(level="worker").mean()
    assert (
        of_worker.idxmax(axis=1).map(names).loc[names_of_strangers].to_numpy() == fresh.group.to_numpy()
    ).mean() > 0.9
    loose = CMM().fit(gaussian.features, gaussian.crowd)
    votes = loose.assign(fresh.features, crowd.drop_workers())
    np.testing.assert_allclose(votes.sum(axis=1), 1)
    f, groups = loose.predict_proba(fresh.features), loose.group_confusion_
    row = crowd.drop_workers()
    by_hand = loose.group_weight_ * np.einsum("nk,mkn->nm", f[row.task], groups[:, :, row.label])
    np.testing.assert_allclose(votes, by_hand / by_hand.sum(axis=1, keepdims=True))


# ---------------------------------------------------------------------- the edges


def test_posterior_weighs_features_against_votes(gaussian: GroupedSimulation) -> None:
    model = CMM().fit(gaussian.features, gaussian.crowd)
    said = model.crowd_confusion_
    evidence = model.predict_proba(gaussian.features) * np.prod(
        said.T[None] ** gaussian.crowd.vote_counts[:, :, None], axis=1
    )
    np.testing.assert_allclose(model.posterior_, evidence / evidence.sum(axis=1, keepdims=True), atol=1e-9)
    assert (model.labels_ == gaussian.truth).mean() > (model.predict(gaussian.features) == gaussian.truth).mean()


@pytest.mark.parametrize("tied", ["no", "worker"])
def test_a_task_nobody_labelled_is_predicted_and_teaches_nothing(gaussian: GroupedSimulation, tied: Any) -> None:
    crowd, features = gaussian.crowd, gaussian.features
    assert features is not None
    more = pd.concat([features, pd.DataFrame([[50.0, 50.0]], index=["silent"], columns=features.columns)])
    wider = Crowd.from_codes(crowd.task, crowd.worker, crowd.label, tasks=more.index, workers=[*crowd.workers, "idle"],  # type: ignore[misc]
                  classes=crowd.classes)  # fmt: skip
    plain, found = CMM(tied=tied).fit(features, crowd), CMM(tied=tied).fit(more, wider)
    np.testing.assert_allclose(found.posterior_[:-1], plain.posterior_, atol=1e-9)
    np.testing.assert_allclose(found.posterior_[-1], found.predict_proba(more)[-1])
    np.testing.assert_allclose(found.worker_groups_.loc["idle"], found.group_weight_)
    np.testing.assert_allclose(found.confusion_[-1], found.crowd_confusion_)


@pytest.mark.parametrize("tied", ["no", "worker"])
def test_gold_is_kept_and_helps(tied: Any) -> None:
    made = simulate_gaussian_groups(n_workers=40, n_tasks=300, random_state=2)
    gold = made.truth.iloc[:100]
    model = CMM(tied=tied).fit(made.features, made.crowd, truth=gold)
    assert (model.labels_.loc[gold.index] == gold).all()
    assert (np.diff(model.trace_) >= -1e-8 * np.abs(model.trace_[1:])).all()
    silent = made.crowd.take(made.crowd.task >= 50)  # gold tasks without votes teach as well
    assert CMM(tied=tied).fit(made.features, silent, truth=gold).score(made.test_features, made.test_truth) > 0.88


def test_the_number_of_groups_by_hidden_votes() -> None:
    made = simulate_gaussian_groups(n_workers=60, n_tasks=700, random_state=4)
    loose = CMM(n_groups="auto").fit(made.features, made.crowd.drop_workers())
    assert loose.n_groups_ == 1  # more groups cannot predict better
    assert loose.selection_["log_likelihood"].max() - loose.selection_["log_likelihood"].min() < 0.01
    tied = CMM(n_groups="auto", tied="worker").fit(made.features, made.crowd)
    assert tied.n_groups_ in (3, 4)


def test_saved_and_cloned(gaussian: GroupedSimulation, tmp_path: Path) -> None:
    model = clone(CMM(n_groups=2, tied="worker")).fit(gaussian.features, gaussian.crowd)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, CMM)
    assert np.array_equal(again.predict_proba(gaussian.features), model.predict_proba(gaussian.features))
    assert np.array_equal(again.confusion_, model.confusion_)
    pd.testing.assert_frame_equal(again.workers_, model.workers_)
    assert again.assign(gaussian.features, gaussian.crowd).equals(model.assign(gaussian.features, gaussian.crowd))


def test_workers_table_agrees_with_confusion(gaussian: GroupedSimulation) -> None:
    model = CMM(tied="worker").fit(gaussian.features, gaussian.crowd)
    right = np.einsum("k,rkk->r", model.posterior_.mean(axis=0), model.confusion_)
    np.testing.assert_allclose(model.workers_["accuracy"], right)
    np.testing.assert_allclose(model.predict_worker_proba(gaussian.features, ["nobody"])[:, 0].sum(axis=1), 1)


def test_other_classifiers(gaussian: GroupedSimulation) -> None:
    from sklearn.linear_model import LogisticRegression

    model = CMM(classifier=LogisticRegression(), tol=1e-3).fit(gaussian.features, gaussian.crowd)
    assert model.score(gaussian.test_features, gaussian.test_truth) > 0.9
    pytest.importorskip("torch")
    from wisecrowd.nn.network_classifier import NetworkClassifier

    network = NetworkClassifier("mlp", hidden=16, dropout=0.2, epochs=1)
    model = CMM(classifier=network, max_iter=40, tol=0.0).fit(gaussian.features, gaussian.crowd)
    # The best iterate is kept, not the last.
    votes = gaussian.crowd.vote_counts
    said = np.clip(model.predict_proba(gaussian.features), 1e-6, None) @ model.crowd_confusion_
    prior = ConfusionMixture(model.group_weight_, model.group_confusion_).log_prior(1.0)
    assert (votes * np.log(said)).sum() + prior == pytest.approx(model.trace_.max(), rel=1e-5)


def test_switched_classes_are_reported() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3, 1, size=(200, 1)), rng.normal(3, 1, size=(200, 1))])
    truth = np.repeat([0, 1], 200)
    votes = np.eye(2)[1 - truth] * 3  # everybody means the other class, and gold says so
    with pytest.warns(DataWarning, match="match other labels better than their own"):
        CMM(n_groups=1).fit(X, crowd_of(votes), truth={task: int(truth[task]) for task in range(0, 400, 2)})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_groups": 0}, "n_groups must be a whole number"),
        ({"n_groups": "many"}, "or 'auto'"),
        ({"n_groups": 1.5}, "whole number"),
        ({"tied": "task"}, "tied"),
        ({"smoothing": -1.0}, "must not be negative"),
        ({"n_init": 0}, "n_init must be 1 or more"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_settings(gaussian: GroupedSimulation, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CMM(**settings).fit(gaussian.features, gaussian.crowd)


def test_bad_input(gaussian: GroupedSimulation) -> None:
    nameless = gaussian.crowd.drop_workers()
    with pytest.raises(InputError, match="no worker ids"):
        CMM(tied="worker").fit(gaussian.features, nameless)
    model = CMM().fit(gaussian.features, nameless)
    with pytest.raises(UsageError, match="without worker ids"):
        _ = model.worker_groups_
    with pytest.raises(InputError, match="classes that the fit did not know"):
        model.assign([[0.0, 0.0]], Crowd.from_triples([(0, "ann", "dog")]))
    with pytest.raises(InputError, match="too few to hide any"):
        CMM(n_groups="auto").fit([[0.0], [1.0]], Crowd.from_triples([(0, "ann", "cat"), (1, "ann", "dog")]))
    with pytest.raises(UsageError, match="not fitted"):
        CMM().assign(gaussian.features, nameless)


def test_one_label_per_worker_and_per_task() -> None:
    made = simulate_gaussian_groups(n_workers=5000, n_tasks=600, votes_per_task=1.0, random_state=0)
    model = CMM().fit(made.features, made.crowd)
    assert np.isfinite(model.posterior_).all()
    assert np.isfinite(model.groups_.to_numpy()).all()


def test_a_crowd_in_shards_is_taken_by_its_counts(tmp_path: Path) -> None:
    made = simulate_gaussian_groups(n_workers=200, n_tasks=150)
    shards = made.crowd.to_shards(tmp_path / "crowd", votes_per_shard=300)
    found = CMM(n_groups=2).fit(made.features, shards)
    wanted = CMM(n_groups=2).fit(made.features, made.crowd.drop_workers())
    assert np.array_equal(found.posterior_, wanted.posterior_)
    with pytest.raises(UsageError, match="needs the votes in memory"):
        CMM(n_groups=2, tied="worker").fit(made.features, shards)


def test_fractions_of_votes_are_hidden_or_visible_but_not_lost() -> None:
    rng = np.random.default_rng(0)
    weight = np.array([0.4, 1.4, 3.0] * 200)
    crowd = Crowd.from_codes(
        np.arange(600), None, rng.integers(2, size=600), tasks=pd.RangeIndex(600), workers=None, classes=pd.Index(["a", "b"]),
        weight=weight, duplicates="keep",
    )  # fmt: skip
    visible, hidden = _hide_votes(crowd, random_state=0)
    total = np.bincount(visible.task, visible.weight, 600) + np.bincount(hidden.task, hidden.weight, 600)
    np.testing.assert_allclose(total, weight)
    assert hidden.weight.sum() / weight.sum() == pytest.approx(0.2, abs=0.03)
    assert np.isclose(hidden.weight, 0.4).any()


def test_the_start_and_the_end_of_the_authors(gaussian: GroupedSimulation) -> None:
    settings: dict[str, Any] = {"start": "authors", "stop": "matrices", "tol": 0.03, "max_iter": 50}
    model = CMM(n_init=3, **settings).fit(gaussian.features, gaussian.crowd)
    assert model.score(gaussian.test_features, gaussian.test_truth) > 0.85
    assert len(model.restarts_) == 3
    assert model.restarts_["objective"].nunique() == 3  # all starts are random
    early = CMM(n_init=1, **settings | {"stop": "objective"}).fit(gaussian.features, gaussian.crowd)
    assert early.n_iter_ < model.restarts_["n_iter"][0]
    with pytest.raises(UsageError, match="start='authors' groups single votes"):
        CMM(tied="worker", start="authors").fit(gaussian.features, gaussian.crowd)
