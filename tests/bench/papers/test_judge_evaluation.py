from __future__ import annotations

import pytest

from wisecrowd.bench.papers.judge_evaluation import BOTH, PEOPLE, STUDIES, Estimator, Study, findings, quick
from wisecrowd.errors import InputError


@pytest.mark.parametrize("title", [title for title, study in quick().data.items() if not study.needs_data])  # type: ignore[attr-defined]
def test_every_simulated_study_is_covered(title: str) -> None:
    study = quick().data[title]
    few = Study(study.kind, study.settings, n_draws=8)  # type: ignore[attr-defined]
    dataset = few.load(0)
    both = Estimator(BOTH)(dataset, 0)
    assert both["coverage"] >= 0.6
    if "ranks" in title:
        with pytest.raises(InputError, match="ranks"):
            Estimator(PEOPLE)(dataset, 0)
    else:
        people = Estimator(PEOPLE)(dataset, 0)
        assert people["coverage"] >= 0.6
        assert both["width"] < 1.1 * people["width"]


def test_studies_exist_and_are_told_apart() -> None:
    studies = quick().data.values()
    assert all(study.kind in STUDIES for study in studies)  # type: ignore[attr-defined]
    assert len({str(study.identity()) for study in studies}) == len(studies)


def test_real_judges_are_announced_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WISECROWD_ANSWER_TYPES", raising=False)
    absent = [study.absence() for study in quick().data.values()]
    assert sum(text is not None for text in absent) == 6


def test_the_message_says_whether_the_variable_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WISECROWD_ANSWER_TYPES", raising=False)
    unset = {study.absence() for study in quick().data.values()} - {None}
    monkeypatch.setenv("WISECROWD_ANSWER_TYPES", "nowhere")
    wrong = {study.absence() for study in quick().data.values()} - {None}
    assert "WISECROWD_ANSWER_TYPES is not set" in str(unset)
    assert "is not in nowhere, the value of the variable WISECROWD_ANSWER_TYPES" in str(wrong)


def test_other_datasets_are_refused() -> None:
    from wisecrowd.bench.data import SimulatedDataset

    with pytest.raises(InputError, match="Study"):
        Estimator(BOTH)(SimulatedDataset({"n_tasks": 10}).load(0), 0)


def test_findings_need_results() -> None:
    assert findings([]) == ()
