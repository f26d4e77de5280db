"""Panels: exact sums over opinions, Dawid and Skene's model as a special case, and judges who are copies."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from wisecrowd import Crowd, DawidSkene, Panel, load, simulate_crowd
from wisecrowd.aggregate.categorical.panel._opinions import OpinionEngine, OpinionTables
from wisecrowd.base.laws import LAWS
from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.evaluate.leave_one_out import leave_one_out_posterior
from wisecrowd.simulate import simulate_panel

GROUP = np.array([0, 0, 0, 1, 1, -1], dtype=np.int32)
VOTES = [
    ("t0", {"a": 0, "b": 0, "c": 1, "d": 1, "e": 1, "f": 0}),
    ("t1", {"a": 2, "b": 2, "c": 2, "f": 1}),
    ("t2", {"a": 1, "d": 0, "e": 2}),
    ("t3", {"a": 0, "b": 1, "c": 2, "d": 1, "e": 0, "f": 2}),
]


@pytest.fixture
def crowd() -> Crowd:
    rows = [(task, worker, label) for task, votes in VOTES for worker, label in votes.items()]
    return Crowd.from_triples(rows, classes=[0, 1, 2], workers=list("abcdef"))


@pytest.fixture
def known() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "prior": rng.dirichlet(np.full(3, 5.0)),
        "own": rng.dirichlet(np.full(3, 2.0), size=(6, 3)),
        "a": np.append(rng.uniform(0.2, 0.9, size=5), 0.0),
        "opinion": rng.dirichlet(np.full(3, 2.0), size=(2, 3)),
    }


def enumerated(known: dict[str, Any]) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """By all classes, opinions and acts of repeating, one by one: posterior, log-likelihood, repeats, opinions."""
    posterior, total = np.zeros((len(VOTES), 3)), 0.0
    repeats, opinions = np.zeros((6, 3, 3)), np.zeros((2, 3, 3))  # (worker, said, true), (group, opinion, true)
    for i, (_, votes) in enumerate(VOTES):
        weights: list[tuple[float, int, tuple[int, int], tuple[int, ...]]] = []
        who = ["abcdef".index(worker) for worker in votes]
        for z, *both in itertools.product(range(3), repeat=3):
            for copied in itertools.product([0, 1], repeat=len(who)):
                p = known["prior"][z] * known["opinion"][0, z, both[0]] * known["opinion"][1, z, both[1]]
                for r, label, repeated in zip(who, votes.values(), copied, strict=True):
                    a = known["a"][r]
                    own = known["own"][r, z, label]
                    p *= a * (both[GROUP[r]] == label) if repeated else (1 - a) * own
                weights.append((p, z, (both[0], both[1]), copied))
        evidence = sum(p for p, *_ in weights)
        total += np.log(evidence)
        for p, z, opinion, copied in weights:
            posterior[i, z] += p / evidence
            for g in {int(GROUP[r]) for r in who} - {-1}:
                opinions[g, opinion[g], z] += p / evidence
            for r, label, repeated in zip(who, votes.values(), copied, strict=True):
                repeats[r, label, z] += repeated * p / evidence
    return posterior, total, repeats, opinions


def tables_of(crowd: Crowd, known: dict[str, Any]) -> OpinionTables:
    worker, label = crowd.pairs.worker, crowd.pairs.label
    a = known["a"][worker, None]
    own = (1 - a) * known["own"][worker, :, label]
    return OpinionTables(own, a + own, known["opinion"].transpose(0, 2, 1))


def test_the_e_step_is_that_of_all_configurations(crowd: Crowd, known: dict[str, Any]) -> None:
    posterior, log_likelihood, repeats, opinions = enumerated(known)
    engine = OpinionEngine(crowd, None, group=GROUP)
    label_probs = tables_of(crowd, known).pack()
    found = engine.expect(known["prior"], label_probs)
    sums = OpinionTables.unpack(found.tally, len(crowd.pairs))
    assert np.allclose(engine.compute_posterior(known["prior"], label_probs), posterior, atol=1e-12)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-12)
    assert np.allclose(sums.repeated, repeats[crowd.pairs.worker, crowd.pairs.label], atol=1e-12)
    assert np.allclose(sums.opinion, opinions, atol=1e-12)
    tally = np.zeros((6, 3, 3))
    for i, (_, votes) in enumerate(VOTES):
        for worker, label in votes.items():
            tally["abcdef".index(worker), label] += posterior[i]
    assert np.allclose(sums.own + sums.repeated, tally[crowd.pairs.worker, crowd.pairs.label], atol=1e-12)
    assert np.allclose(found.class_counts, posterior.sum(axis=0), atol=1e-12)


def test_known_parameters_give_their_posterior(crowd: Crowd, known: dict[str, Any]) -> None:
    panel = Panel(groups={"a": "g", "b": "g", "c": "g", "d": "h", "e": "h"})
    given = {"confusion": known["own"], "shared": known["a"], "opinion_confusion": known["opinion"]}
    found = panel.posterior_by(crowd, prior=known["prior"], **given)
    assert np.allclose(found, enumerated(known)[0], atol=1e-12)
    with pytest.raises(UsageError, match="shapes"):
        panel.posterior_by(crowd, **{**given, "shared": [0.5]})


def test_gold_leaves_only_its_own_term(crowd: Crowd, known: dict[str, Any]) -> None:
    label_probs = tables_of(crowd, known).pack()
    free = OpinionEngine(crowd, None, group=GROUP)
    posterior, log_likelihood = enumerated(known)[:2]
    gold = np.array([-1, 2, -1, -1], dtype=np.int32)
    found = OpinionEngine(crowd, gold, group=GROUP).expect(known["prior"], label_probs)
    assert found.log_likelihood == pytest.approx(log_likelihood + np.log(posterior[1, 2]), abs=1e-12)
    assert np.allclose(
        OpinionEngine(crowd, gold, group=GROUP).compute_posterior(known["prior"], label_probs)[[0, 2, 3]],
        free.compute_posterior(known["prior"], label_probs)[[0, 2, 3]],
    )


@pytest.mark.parametrize("groups", [None, {}, {"w00": "alone", "w01": "single"}])
@pytest.mark.parametrize("options", [{}, {"n_init": 3}, {"smoothing": 0.0, "diagonal": 0.0}, {"init": "spectral"}])
def test_without_groups_it_is_dawid_skene(groups: dict[str, str] | None, options: dict[str, Any]) -> None:
    made = simulate_crowd(n_tasks=200, n_workers=12, n_classes=3, votes_per_task=8, random_state=5)
    panel, plain = Panel(groups=groups, **options).fit(made.crowd), DawidSkene(**options).fit(made.crowd)
    assert np.array_equal(panel.posterior_, plain.posterior_)
    assert np.array_equal(panel.confusion_, plain.confusion_)
    assert np.array_equal(panel.trace_, plain.trace_)
    pd.testing.assert_frame_equal(panel.workers_, plain.workers_)
    pd.testing.assert_frame_equal(panel.predict_proba(made.crowd), plain.predict_proba(made.crowd))


def test_members_who_never_repeat_are_independent(crowd: Crowd, known: dict[str, Any]) -> None:
    known["a"] = np.zeros(6)
    given = {"confusion": known["own"], "shared": known["a"], "opinion_confusion": known["opinion"]}
    groups = {"a": "g", "b": "g", "c": "g", "d": "h", "e": "h"}
    found = Panel(groups=groups).posterior_by(crowd, **given)
    joint = np.zeros((4, 3))
    np.add.at(joint, crowd.task, np.log(known["own"])[crowd.worker, :, crowd.label])
    wanted = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    assert np.allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"accelerate": False}, {"smoothing": 0.0, "diagonal": 0.0}])
@pytest.mark.parametrize("n_models", [1, 3])
def test_the_objective_climbs(options: dict[str, Any], n_models: int) -> None:
    made = simulate_panel(200, 6, 2, 3, n_models=n_models, strength=0.7, people_density=0.5, random_state=2)
    panel = Panel(groups=made.groups, kinds=made.kinds, **options).fit(made.crowd)
    assert (np.diff(panel.trace_) >= -1e-8 * (1 + np.abs(panel.trace_[1:]))).all()
    assert len(panel.restarts_) == 2
    assert panel.trace_[-1] == pytest.approx(panel.restarts_["objective"].max(), rel=1e-5)


def cloned(made: Any, times: int) -> tuple[Crowd, dict[str, str]]:
    """The panel with its one judge written down several times."""
    votes = made.crowd.to_frame()
    judge = votes[votes["worker"] == "judge0"]
    copies = [judge.assign(worker=f"copy{number}") for number in range(times)]
    crowd = Crowd.from_frame(pd.concat([votes, *copies]), tasks=made.crowd.tasks, classes=made.crowd.classes)
    return crowd, dict.fromkeys(["judge0", *(f"copy{number}" for number in range(times))], "one")


def test_ten_copies_count_as_one() -> None:
    made = simulate_panel(600, 1, 3, 3, strength=0.0, judge_accuracy=0.7, random_state=7)
    once = DawidSkene().fit(made.crowd)
    crowd, groups = cloned(made, 9)
    believed = DawidSkene().fit(crowd)
    panel = Panel(groups=groups).fit(crowd)
    assert (panel.labels_ == once.labels_).mean() > 0.98
    assert np.abs(panel.posterior_ - once.posterior_).mean() < 0.02
    assert (believed.labels_ == once.labels_).mean() < 0.85  # ten equal votes convince it
    assert panel.shared_[panel.group_ >= 0].min() > 0.97
    alone = float(panel.judges_["alone"].mean())
    assert panel.opinions_["worth"]["one"] == pytest.approx(alone, rel=0.1)
    assert panel.judges_["worth"].sum() == pytest.approx(panel.opinions_["worth"]["one"])


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 71), (3, 72), (5, 73)])
@pytest.mark.slow
def test_ten_judges_do_not_outvote_three_people(n_classes: int, seed: int) -> None:
    made = simulate_panel(1000, 10, 3, n_classes, strength=0.9, random_state=seed)
    panel = Panel(groups=made.groups, kinds=made.kinds)
    best = panel.posterior_by(
        made.crowd, confusion=made.confusion, shared=made.shared, opinion_confusion=made.opinion_confusion
    )
    right = {
        "oracle": (best.idxmax(axis=1) == made.truth).mean(),
        "panel": (panel.fit(made.crowd).labels_ == made.truth).mean(),
        "plain": (DawidSkene().fit(made.crowd).labels_ == made.truth).mean(),
    }
    assert right["panel"] > right["oracle"] - 0.015  # of one panel; the benchmark has ten
    assert right["plain"] < right["panel"] - 0.05
    assert np.abs(panel.shared_[:10] - 0.9).max() < 0.05
    assert np.abs(panel.opinion_confusion_[0] - made.opinion_confusion[0]).max() < 0.12


def test_groups_that_are_wrong_do_little_harm() -> None:
    made = simulate_crowd(n_tasks=300, workers=["noisy(0.7)"] * 12, n_classes=3, votes_per_task=8, random_state=4)
    groups = {f"w{number:02d}": f"g{number % 3}" for number in range(12)}
    panel, plain = Panel(groups=groups).fit(made.crowd), DawidSkene().fit(made.crowd)
    assert (panel.labels_ == made.truth).mean() > (plain.labels_ == made.truth).mean() - 0.015
    assert panel.shared_.mean() < 0.5


def test_gold_says_what_judges_are_worth() -> None:
    made = simulate_panel(400, 8, 1, 2, strength=0.95, hard=0.45, people_accuracy=0.8, random_state=11)
    gold = made.truth.iloc[:150]
    unseen = made.truth.index[150:]
    without = Panel(groups=made.groups).fit(made.crowd)
    anchored = Panel(groups=made.groups).fit(made.crowd, truth=gold)
    right = {name: (fit.labels_ == made.truth)[unseen].mean() for name, fit in (("no", without), ("yes", anchored))}
    assert right["yes"] > right["no"] + 0.1
    sigma = np.trace(anchored.opinion_confusion_[0]) / 2
    assert abs(sigma - np.trace(made.opinion_confusion[0]) / 2) < 0.1


def test_people_are_trusted_before_they_are_known() -> None:
    made = simulate_panel(120, 6, 2, 2, strength=0.5, people_density=0.1, random_state=3)
    votes = made.crowd.to_frame().query("worker.str.startswith('person')")
    place = made.crowd.tasks.get_indexer(votes["task"]), made.crowd.classes.get_indexer(votes["label"])
    believed = [
        Panel(groups=made.groups, kinds=made.kinds, trust=trust).fit(made.crowd).posterior_[place].mean()
        for trust in (0.0, 5.0, 50.0)
    ]
    assert believed[0] < believed[1] < believed[2]
    unknown = Panel(groups=made.groups, trust=50.0).fit(made.crowd).posterior_[place].mean()
    assert unknown == pytest.approx(believed[0])  # who is not known to be a person is not trusted as one


def test_the_report_on_judges() -> None:
    made = simulate_panel(500, 6, 3, 3, n_models=2, strength=0.8, random_state=9)
    panel = Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    table = panel.judges_
    assert table.index.tolist() == made.groups.index.tolist()
    assert table["group"].tolist() == made.groups.tolist()
    votes = made.crowd.to_frame()
    right = (votes["label"] == votes["task"].map(made.truth)).groupby(votes["worker"]).mean()
    assert np.abs(table["accuracy"] - right[table.index]).max() < 0.04
    assert np.abs(table["shared"] - 0.8).max() < 0.1
    people = DawidSkene().fit(votes[votes["worker"].str.startswith("person")]).labels_
    agrees = (votes["label"] == votes["task"].map(people)).groupby(votes["worker"]).mean()
    assert np.abs(table["agreement"] - agrees[table.index]).max() < 0.08
    by_group = (table["worth"]).groupby(table["group"]).sum()
    assert np.allclose(by_group, panel.opinions_["worth"])
    assert (table["worth"] < table["alone"]).all()
    assert panel.judge_confusion_.shape == (6, 3, 3)
    assert np.allclose(panel.judge_confusion_.sum(axis=(1, 2)), table["n_votes"])
    assert panel.opinions_["n_workers"].tolist() == [3, 3]


def test_scores_are_held_against_how_often_judges_are_right() -> None:
    made = simulate_panel(2000, 2, 3, 2, strength=0.5, random_state=9)
    votes = made.crowd.to_frame().query("worker.str.startswith('judge')")
    right = votes["label"] == votes["task"].map(made.truth)
    honest, boasting = right[votes["worker"] == "judge0"].mean(), 0.95
    scores = votes.assign(score=votes["worker"].map({"judge0": honest, "judge1": boasting}))
    panel = Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    by_truth, by_panel = panel.calibration(scores, truth=made.truth), panel.calibration(scores)
    assert by_truth["calibration_error"]["judge0"] == pytest.approx(0, abs=1e-9)
    assert by_truth["calibration_error"]["judge1"] == pytest.approx(
        boasting - right[votes["worker"] == "judge1"].mean()
    )
    assert np.abs(by_panel - by_truth).max(axis=None) < 0.05
    for bad, words in (({"score": 2.0}, "between 0 and 1"), ({"task": "?"}, "no score matches")):
        with pytest.raises(InputError, match=words):
            panel.calibration(scores.assign(**bad))
    nobody_chose = dict.fromkeys(made.truth.index, "another class")
    assert (panel.calibration(scores, truth=nobody_chose)["accuracy"] == 0).all()
    with pytest.raises(InputError, match="need the columns"):
        panel.calibration(scores[["task", "worker"]])


def test_judges_without_people_are_worth_nobody_knows_what() -> None:
    made = simulate_panel(100, 4, 0, 2, strength=0.5)
    with pytest.warns(DataWarning, match="only gold shows which of them are right"):
        panel = Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd, truth=made.truth.head(20))  # which has an anchor
    assert panel.judges_[["agreement", "alone", "worth"]].isna().all(axis=None)


@pytest.mark.parametrize(
    "law",
    [name for name in LAWS if name not in {"worker_names_do_not_matter", "degenerate_crowds_are_handled"}],
)
def test_a_panel_with_groups_obeys_the_laws(law: str) -> None:
    made = simulate_panel(60, 5, 3, 3, n_models=2, strength=0.7, people_density=0.6, random_state=1)
    LAWS[law](Panel(groups=made.groups, kinds=made.kinds), made.crowd)


def test_worker_names_do_not_matter() -> None:
    made = simulate_panel(80, 5, 3, 3, n_models=2, strength=0.7, random_state=1)
    names = {name: f"z{len(made.kinds) - place}" for place, name in enumerate(made.kinds.index)}
    votes = made.crowd.to_frame()
    renamed = Crowd.from_frame(votes.assign(worker=votes["worker"].map(names)))
    groups = {names[worker]: {"model0": "z", "model1": "a"}[group] for worker, group in made.groups.items()}
    found, wanted = Panel(groups=groups).fit(renamed), Panel(groups=made.groups).fit(made.crowd)
    assert np.allclose(found.posterior_, wanted.posterior_, atol=1e-6)


def test_new_votes_are_answered_by_what_is_known() -> None:
    made = simulate_panel(200, 5, 3, 3, strength=0.8, random_state=1)
    panel = Panel(groups=made.groups, kinds=made.kinds, tol=1e-12, max_iter=2000).fit(made.crowd)
    assert np.allclose(panel.predict_proba(made.crowd), panel.posterior_, atol=1e-4)
    judges = [("new", f"judge{number}", "c1") for number in range(5)]
    one, all_five = (
        panel.predict_proba(Crowd.from_triples(judges[:number], classes=["c0", "c1", "c2"])).loc["new", "c1"]
        for number in (1, 5)
    )
    person = panel.predict_proba(Crowd.from_triples([*judges, ("new", "person0", "c2")], classes=["c0", "c1", "c2"]))
    assert one < all_five
    assert person.loc["new", "c1"] < all_five
    stranger = panel.predict_proba(Crowd.from_triples([("new", "who", "c1")], classes=["c0", "c1", "c2"]))
    assert stranger.loc["new"].idxmax() == "c1"


@pytest.mark.parametrize("form", [dict, pd.Series])
def test_groups_survive_copies_and_disks(form: Callable[[Any], Any], tmp_path: Path) -> None:
    votes = [(task, worker, task % 2) for task in range(9) for worker in range(4)]
    crowd = Crowd.from_triples(votes)
    panel = Panel(groups=form({0: "gpt", 2: "gpt"}), kinds=form({0: "machine", 1: "person"}))
    assert panel.get_params()["groups"] == {"0": "gpt", "2": "gpt"}
    assert clone(panel).get_params() == panel.get_params() == panel.clone_unfitted().get_params()
    fitted = panel.fit(crowd)
    assert fitted.group_.tolist() == [0, -1, 0, -1]
    fitted.save(tmp_path / "panel")
    again = load(tmp_path / "panel")
    assert isinstance(again, Panel)
    assert again.get_params() == panel.get_params()
    pd.testing.assert_frame_equal(again.judges_, fitted.judges_)
    pd.testing.assert_frame_equal(again.opinions_, fitted.opinions_)
    pd.testing.assert_frame_equal(again.predict_proba(crowd), fitted.predict_proba(crowd))
    assert np.array_equal(again.fit(crowd).posterior_, fitted.posterior_)
    assert Panel().set_params(groups=form({0: "gpt"})).groups == {"0": "gpt"}


def test_a_second_fit_forgets_the_first() -> None:
    made = simulate_panel(50, 3, 2, 2)
    panel = Panel(groups=made.groups).fit(made.crowd)
    panel.set_params(groups=None).fit(made.crowd)
    assert not hasattr(panel, "judges_")
    assert np.array_equal(panel.posterior_, DawidSkene().fit(made.crowd).posterior_)


def test_a_series_may_leave_workers_out() -> None:
    made = simulate_panel(50, 3, 2, 2)
    told = made.groups.reindex(made.crowd.workers)
    assert Panel(groups=told).groups == made.groups.to_dict()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"groups": {"judge0": "m", "nobody": "m"}}, InputError, "not in the crowd: 'nobody'"),
        ({"kinds": {"nobody": "person"}}, InputError, "not in the crowd: 'nobody'"),
        ({"kinds": {"judge0": "robot"}}, UsageError, "'person', 'machine'; got 'robot'"),
        ({"sharing": 0.0}, UsageError, "sharing must be positive"),
        ({"trust": -1.0}, UsageError, "trust not negative"),
        ({"groups": {"judge0": "m", "judge1": "m"}, "engine": "ray"}, UsageError, "engine must be 'local'"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    made = simulate_panel(30, 3, 2, 2)
    with pytest.raises(error, match=words):
        Panel(**options).fit(made.crowd)


@pytest.mark.parametrize("groups", ["gpt", 3, ["judge0"], {("a", "b")}])
def test_groups_are_said_by_worker(groups: Any) -> None:
    with pytest.raises(UsageError, match="by worker"):
        Panel(groups=groups)


def test_a_worker_has_one_group() -> None:
    with pytest.raises(InputError, match="twice: '1'"):
        Panel(groups=pd.Series(["x", "y"], index=pd.Index([1, "1"], dtype=object)))


def test_kinds_alone_let_votes_come_later() -> None:
    made = simulate_panel(60, 2, 2, 2, strength=0.0)
    votes = made.crowd.to_frame()
    kinds = made.kinds.drop("person1")
    early = Crowd.from_frame(votes[votes["worker"] != "person1"])
    panel = Panel(kinds=kinds, dependence="groups").partial_fit(early).partial_fit(votes[votes["worker"] == "person1"])
    assert panel.is_person_.tolist() == [False, False, True, False]
    assert panel.converge().judges_.index.tolist() == ["judge0", "judge1"]
    whole = Panel(kinds=kinds, dependence="groups", tol=1e-10, max_iter=5000).fit(made.crowd)
    assert np.allclose(panel.posterior_, whole.posterior_, atol=0.01)


def test_what_takes_votes_for_independent_is_refused() -> None:
    made = simulate_panel(50, 3, 2, 2)
    panel = Panel(groups=made.groups).fit(made.crowd)
    with pytest.raises(UsageError, match="depend on each other"):
        leave_one_out_posterior(panel, made.crowd)
    with pytest.raises(UsageError, match="fit all votes"):
        panel.partial_fit(made.crowd)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.slow
def test_machines_that_agree_too_much_without_a_group_are_named(n_classes: int) -> None:
    made = simulate_panel(300, 5, 3, n_classes, strength=0.95, random_state=2)
    with pytest.warns(DataWarning, match="these 5 machines agree with each other on") as told:
        panel = Panel(kinds=made.kinds, dependence="groups").fit(made.crowd)
    assert panel.notes_ == [str(told[0].message)]
    assert "'judge0'" in panel.notes_[0]
    assert told[0].filename == __file__
    assert Panel(kinds=made.kinds, groups=made.groups).fit(made.crowd).notes_ == []
    alone = {name: name for name in made.groups.index}  # groups of one are none
    assert Panel(kinds=made.kinds, groups=alone).fit(made.crowd).notes_ == []
    with pytest.warns(DataWarning, match="these 5 machines"):
        Panel(kinds=made.kinds, groups=alone, dependence="groups").fit(made.crowd)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_machines_that_err_independently_are_not(n_classes: int, seed: int) -> None:
    made = simulate_panel(300, 6, 3, n_classes, strength=0.0, random_state=seed)
    assert Panel(kinds=made.kinds).fit(made.crowd).notes_ == []


def test_what_is_shared_is_the_same_in_both_tables() -> None:
    made = simulate_panel(200, 4, 3, 3, strength=0.8)
    panel = Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    assert np.allclose(panel.workers_.loc[panel.judges_.index, "shared"], panel.judges_["shared"])
