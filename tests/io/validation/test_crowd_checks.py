"""Checks of crowds at their thresholds. `test_vote_checks.py` has files and the whole report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd
from wisecrowd.io.validation.crowd_checks import MIN_COPIED_VOTES, MIN_VOTES, check_crowd, make_number_finding
from wisecrowd.io.validation.findings import Finding


def check(rows: list[tuple[Any, Any, Any]], *, repeats_allowed: bool = True, **options: Any) -> dict[str, Finding]:
    crowd = Crowd.from_triples(rows, **{"duplicates": "keep"} | options)
    return {finding.name: finding for finding in check_crowd(crowd, repeats_allowed=repeats_allowed)}


def varied(n_tasks: int, workers: str = "abc") -> list[tuple[Any, Any, Any]]:
    """Votes that differ between workers and tasks."""
    return [
        (task, who, "xyz"[(task + 2 * position) % 3]) for task in range(n_tasks) for position, who in enumerate(workers)
    ]


def test_a_sound_crowd_has_no_findings() -> None:
    assert check(varied(12)) == {}


def test_no_votes_are_an_error() -> None:
    (finding,) = check_crowd(Crowd.from_triples(varied(2)).take([]), repeats_allowed=True)
    assert (finding.name, finding.severity) == ("empty-file", "error")


@pytest.mark.parametrize(("n_once", "severity"), [(1, "note"), (3, "note"), (4, "warning")])
def test_workers_with_one_vote_are_a_warning_if_they_are_most(n_once: int, severity: str) -> None:
    finding = check([*varied(12), *((task, f"once{task}", "x") for task in range(n_once))])["one-vote-workers"]
    assert (finding.count, finding.severity) == (n_once, severity)


@pytest.mark.parametrize("n_votes", [MIN_VOTES - 1, MIN_VOTES])
def test_a_single_answer_shows_from_five_votes_on(n_votes: int) -> None:
    findings = check([*varied(12), *((task, "stuck", "x") for task in range(n_votes))])
    assert ("one-answer-workers" in findings) == (n_votes >= MIN_VOTES)


def test_a_single_answer_that_others_share_is_fine() -> None:
    rows = [(task, who, "x") for task in range(8) for who in "abcd"] + varied(8, "ef")
    assert "one-answer-workers" not in check(rows)


@pytest.mark.parametrize("n_common", [MIN_COPIED_VOTES - 1, MIN_COPIED_VOTES])
def test_equal_answers_show_from_twenty_votes_on(n_common: int) -> None:
    copies = [(task, who, "xyz"[task % 3]) for task in range(n_common) for who in ("original", "copy")]
    findings = check(
        copies + [(task, who, "xyz"[(task + 1) % 3]) for task in range(n_common) for who in "ab"[: 1 + task % 2]]
    )
    assert ("identical-workers" in findings) == (n_common >= MIN_COPIED_VOTES)


def test_groups_without_a_common_worker_are_counted() -> None:
    rows = varied(9) + [(f"other{task}", who, "xy"[task % 2]) for task in range(4) for who in "de"]
    finding = check([(str(task), who, label) for task, who, label in rows])["disconnected-graph"]
    assert finding.count == 2
    assert set(finding.examples) <= {f"other{task}" for task in range(4)}


def test_tasks_with_few_votes() -> None:
    findings = check([*varied(12), (99, "a", "x")], tasks=[*range(12), 50, 99])
    assert findings["one-vote-tasks"].examples == (99,)
    assert findings["one-vote-tasks"].severity == "note"
    assert findings["no-vote-tasks"].examples == (50,)


def test_rows_without_workers_are_no_single_votes() -> None:
    crowd = Crowd.from_triples(varied(3)).drop_workers()
    assert [finding.name for finding in check_crowd(crowd, repeats_allowed=True)] == []


class TestClasses:
    def test_one_class(self) -> None:
        assert "single-class" in check([(task, who, "x") for task in range(3) for who in "ab"])

    def test_unused_and_rare_classes(self) -> None:
        rows = [*varied(40), (0, "d", "seldom"), (1, "d", "x")]
        findings = check(rows, classes=["x", "y", "z", "seldom", "never"])
        assert findings["unused-classes"].examples == ("never",)
        assert findings["rare-class"].examples == ("seldom",)
        assert "rare-class" not in check([*varied(12), (0, "d", "seldom"), (1, "d", "x")]), (
            "all classes are rare in small crowds"
        )

    @pytest.mark.parametrize("word", ["N/A", "none", " nan ", "?", "-"])
    def test_words_for_a_missing_answer(self, word: str) -> None:
        findings = check([*varied(12), (0, "d", word), (1, "d", "x")])
        assert findings["labels-look-missing"].examples == (word,)

    def test_numbers_that_are_listed_as_classes_are_fine(self) -> None:
        rng = np.random.default_rng(0)
        rows = [(task, who, str(rng.integers(1000) / 10)) for task in range(30) for who in "abc"]
        crowd = Crowd.from_triples(rows)
        assert any(finding.name == "numeric-labels-as-classes" for finding in check_crowd(crowd, repeats_allowed=True))
        listed = check_crowd(crowd, repeats_allowed=True, classes_listed=True)
        assert not any(finding.name == "numeric-labels-as-classes" for finding in listed)
        assert make_number_finding("error", [1.5, 2.5]).severity == "error"


def test_line_breaks_in_ids() -> None:
    finding = check([*varied(3), (0, "d\nt1,ann", "x"), (1, "d\nt1,ann", "y")])["line-breaks"]
    assert finding.examples == ("d\nt1,ann",)


def test_lookalikes_are_named_with_escapes() -> None:
    labels = check([("t", "a", "caf\u00e9"), ("t", "b", "cafe\u0301")])["labels-look-alike"]
    assert (labels.severity, labels.count) == ("warning", 2)
    assert r"('cafe\u0301', 'café')" in labels.message
    assert set(labels.examples) == {"caf\u00e9", "cafe\u0301"}
    ids = check([("t1", "an\u00a0n", "x"), ("t\u200b1", "ann", "x")])["ids-look-alike"]
    assert ids.count == 4
    assert all(text in ids.message for text in (r"'t\u200b1'", "'t1'", r"'an\xa0n'", "'ann'"))
    assert "labels-look-alike" not in check(varied(4))
