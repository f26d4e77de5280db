"""Crowds of people and machines: members of a group are no witnesses of each other, and are not held against people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import Crowd, Panel
from wisecrowd.base import method as base_method
from wisecrowd.diagnose.preparation import compute_peer_posterior, count_agreeing_votes, resolve_model
from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.simulate.panels import PanelSimulation, simulate_panel


@pytest.fixture(scope="module")
def made() -> PanelSimulation:
    """Ten prompts of one model that is wrong on a quarter of the tasks, and three people."""
    return simulate_panel(500, 10, 3, 3, strength=0.95, random_state=4)


@pytest.fixture(scope="module")
def panel(made: PanelSimulation) -> Panel:
    return Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)


def right_of(made: PanelSimulation) -> pd.Series:
    votes = made.crowd.to_frame()
    return (votes["label"] == votes["task"].map(made.truth)).groupby(votes["worker"]).mean()


@pytest.mark.slow
def test_workers_are_judged_by_those_outside_their_group(made: PanelSimulation, panel: Panel) -> None:
    found = wc.diagnose_crowd(made.crowd, model=panel)
    table = found.workers
    assert (table["flags"] == "").all()
    assert np.abs(table["accuracy"] - right_of(made)).max() < 0.06
    assert table["kind"].tolist() == ["machine"] * 10 + ["person"] * 3
    assert table["belongs_to"].tolist() == ["model0"] * 10 + [""] * 3
    share = (found.tasks["label"] == made.truth).mean()
    assert panel.posterior_.max(axis=1).mean() == pytest.approx(share, abs=0.03)
    alone = wc.diagnose_crowd(made.crowd)  # what all this is for
    assert "kind" not in alone.workers
    assert alone.model.posterior_.max(axis=1).mean() > (alone.tasks["label"] == made.truth).mean() + 0.1


def test_others_are_the_posterior_without_the_group(made: PanelSimulation, panel: Panel) -> None:
    told = compute_peer_posterior(panel, made.crowd)
    people = made.crowd.select_workers(["person0", "person1", "person2"])
    wanted = panel.predict_proba(people).loc[made.crowd.tasks].to_numpy()
    judges = np.flatnonzero(made.crowd.worker_codes < 10)
    assert np.allclose(told[judges], wanted[made.crowd.task[judges]], atol=1e-6)
    rest = made.crowd.take(made.crowd.worker_codes != 11)
    without = panel.predict_proba(rest).loc[made.crowd.tasks].to_numpy()
    mine = np.flatnonzero(made.crowd.worker_codes == 11)
    assert np.allclose(told[mine], without[made.crowd.task[mine]], atol=1e-6)
    with pytest.raises(UsageError, match="fitted on"):
        panel.evidence(made.crowd[np.arange(10)])
    for other in (made.crowd[np.arange(10)], made.crowd.take(np.arange(made.crowd.n_votes) > 0)):
        with pytest.raises(UsageError, match="or refit the model"):
            print(wc.diagnose_crowd(other, model=panel).workers)


@pytest.mark.slow
def test_agreement_is_with_others_outside_the_group(made: PanelSimulation, panel: Panel) -> None:
    votes = made.crowd.to_frame()
    people = votes[votes["worker"].str.startswith("person")]
    met = votes.query("worker == 'judge0'").merge(people, on="task")
    wanted = (met["label_x"] == met["label_y"]).mean()
    assert wc.diagnose_crowd(made.crowd, model=panel).workers.loc["judge0", "agreement"] == pytest.approx(wanted)
    same, others = count_agreeing_votes(made.crowd, panel.group_)
    assert others.tolist() == np.where(made.crowd.worker_codes < 10, 3, 12).tolist()
    assert (same <= others).all()


@pytest.mark.slow
def test_members_are_no_copies_of_each_other_but_others_are(made: PanelSimulation) -> None:
    votes = made.crowd.to_frame()
    cheat = votes.query("worker == 'person2'").assign(worker="person3")
    crowd = Crowd.from_frame(pd.concat([votes, cheat]))
    kinds = {**made.kinds, "person3": "person"}
    found = wc.diagnose_crowd(crowd, model=Panel(groups=made.groups, kinds=kinds).fit(crowd)).worker_diagnosis.copying
    assert {tuple(pair) for pair in found.flagged[["first", "second"]].to_numpy()} == {("person2", "person3")}
    stranger = votes.query("worker == 'judge3'").assign(worker="other:judge")  # the same model by another name
    crowd = Crowd.from_frame(pd.concat([votes, stranger]))
    kinds = {**made.kinds, "other:judge": "machine"}
    with pytest.warns(DataWarning, match="these 11 machines agree with each other"):
        other = Panel(groups=made.groups, kinds=kinds).fit(crowd)
    found = wc.diagnose_crowd(crowd, model=other).worker_diagnosis.copying
    assert len(found.flagged)
    assert set(found.flagged["second"]) | set(found.flagged["first"]) >= {"other:judge", "judge3"}
    assert not any(
        pair.first.startswith("judge") and pair.second.startswith("judge") for pair in found.suspects.itertuples()
    )


def test_a_task_counts_voices_and_not_members(made: PanelSimulation, panel: Panel) -> None:
    found = wc.diagnose_crowd(made.crowd, model=panel)
    assert np.allclose(found.task_diagnosis._effective_votes, 4)
    kinds = found.tasks["kind"].value_counts()
    assert kinds.get("ambiguous", 0) < 0.1 * len(found.tasks)
    # Difficulty is by the truth that the panel found: where people outvote the group, the task is hard.
    outvoted = found.tasks["kind"] == "outvoted"
    assert found.tasks["difficulty"][outvoted].mean() > found.tasks["difficulty"][~outvoted].mean() + 1


def test_whom_nobody_can_judge_is_accused_of_nothing() -> None:
    made = simulate_panel(200, 4, 3, 3, strength=0.9, random_state=1)
    votes = made.crowd.to_frame()
    apart = votes["worker"].str.startswith("judge") == (votes["task"].map(lambda task: int(task[1:]) % 2) == 0)
    crowd = Crowd.from_frame(votes[apart])  # judges and people share no task
    found = wc.diagnose_crowd(crowd, model=Panel(groups=made.groups, kinds=made.kinds).fit(crowd)).workers
    judges = found[found["kind"] == "machine"]
    assert (judges["flags"] == "").all()
    assert judges["agreement"].isna().all()
    assert ((judges["high"] - judges["low"]) > 0.2).all()


@pytest.mark.slow
def test_drift_and_groups_who_err_alike_work_beside_a_panel(made: PanelSimulation, panel: Panel) -> None:
    found: Any = wc.diagnose_crowd(made.crowd, model=panel)
    assert found.groups.size.sum() == 13
    assert repr(found)
    assert found.confusion.shape == (3, 3)


def test_matrices_of_many_unused_classes_are_refused_before_the_fit() -> None:
    """A file may name thousands of classes, of which few have votes."""
    crowd = Crowd.from_triples([("t1", "ann", "x0"), ("t1", "bob", "x1")], classes=[f"x{n}" for n in range(5000)])
    with pytest.raises(InputError, match=r"there are 5,000 classes for 2 votes.*tables of 5,000 rows by class"):
        resolve_model(crowd)


def test_tables_of_votes_by_rare_classes_are_refused_before_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand workers who label the same dozen tasks have few pairs and many votes."""
    crowd = Crowd.from_triples([(task, worker, worker) for task in range(6) for worker in range(20)])
    monkeypatch.setattr(base_method, "MAX_CELLS_BY_VOTES_PER_CLASS", {30: 6 * 20 * 20})
    resolve_model(crowd)
    monkeypatch.setattr(base_method, "MAX_CELLS_BY_VOTES_PER_CLASS", {30: 6 * 20 * 20 - 1})
    with pytest.raises(InputError, match=r"there are 20 classes for 120 votes.*tables of 120 rows"):
        resolve_model(crowd)
