from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.errors import UsageError
from wisecrowd.io.validation.findings import Finding, ValidationReport
from wisecrowd.io.validation.vote_checks import find_options

#: Four workers, three classes, nothing to complain of.
GOOD = [
    (f"t{task}", worker, "abc"[(task + shift) % 3])
    for task in range(12)
    for shift, worker in enumerate(["w", "x", "y", "z"])
]


def frame(rows: list[tuple[Any, Any, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def found(examination: ValidationReport) -> dict[str, Finding]:
    return {finding.name: finding for finding in examination.findings}


def only(rows: list[tuple[Any, Any, Any]], name: str, **options: Any) -> Finding:
    """The one finding of that name."""
    named = [finding for finding in wc.check_votes(frame(rows), **options).findings if finding.name == name]
    assert len(named) == 1
    return named[0]


def test_good_votes() -> None:
    examination = wc.check_votes(frame(GOOD))
    assert examination.ok
    assert examination.findings == ()
    assert "no problems found" in str(examination)
    assert examination.summary == repr(wc.Crowd.from_triples(GOOD))


def test_all_sources_say_the_same(tmp_path: Path) -> None:
    rows = [*GOOD, ("t0", "new", " a")]
    crowd = wc.Crowd.from_triples(rows)
    for name in ("v.csv", "v.parquet", "v.jsonl", "folder"):
        wc.write(crowd, tmp_path / name)
    sources = [
        crowd,
        frame(rows),
        pa.table(frame(rows)),
        frame(rows).to_dict("list"),
        *tmp_path.iterdir(),
        str(tmp_path / "v.csv"),
    ]
    names = [[finding.name for finding in wc.check_votes(source).findings] for source in sources]
    assert names == [["labels-differ-by-case-or-space", "one-vote-workers"]] * len(sources)


# ---------------------------------------------------------------------- what would change the answer


def test_repeated_votes() -> None:
    finding = only([*GOOD, GOOD[0], GOOD[0]], "duplicate-votes")
    assert (finding.severity, finding.count, finding.examples) == ("error", 2, (("t0", "w"), ("t0", "w")))
    assert 'duplicates="distinct"' in finding.fix


def test_conflicting_votes() -> None:
    finding = only([*GOOD, ("t0", "w", "c")], "conflicting-votes")
    assert (finding.severity, finding.count, finding.examples) == ("error", 1, (("t0", "w"),))
    assert 'duplicates="first"' in finding.fix


@pytest.mark.parametrize("duplicates", ["first", "last", "distinct", "keep"])
def test_a_decision_settles_repeats(duplicates: str) -> None:
    examination = wc.check_votes(frame([*GOOD, GOOD[0], ("t1", "w", "c")]), duplicates=duplicates)
    assert examination.ok
    assert {finding.name for finding in examination.notes} == {"duplicate-votes", "conflicting-votes"}


def test_missing_labels_and_ids() -> None:
    rows = [*GOOD, ("t0", "new", None), (None, "w", "a"), ("t9", None, "a")]
    examination = wc.check_votes(frame(rows))
    assert [finding.name for finding in examination.errors] == ["missing-ids", "missing-ids", "missing-labels"]
    assert [finding.examples for finding in examination.errors] == [(49,), (50,), (48,)]
    assert all('missing="drop"' in finding.fix for finding in examination.errors)
    assert wc.check_votes(frame(rows), missing="drop").ok


def test_one_run_tells_all(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(
        "task,worker,label,weight\nt1,ann,cat,1\nt1,ann,cat,1\nt1,ann,dog,1\nt2,ann,,1\n,ann,cat,1\nt3,,cat,-1\n"
    )
    examination = wc.check_votes(path)
    assert {finding.name for finding in examination.errors} == {
        "duplicate-votes", "conflicting-votes", "missing-labels", "missing-ids", "bad-weights",
    }  # fmt: skip
    assert not examination.ok


def test_fractions_are_no_classes(tmp_path: Path) -> None:
    rows = [(task, worker, float(n) / 4) for n, (task, worker, _) in enumerate(GOOD)]
    finding = only(rows, "numeric-labels-as-classes")
    assert finding.severity == "error"
    assert "numeric=True" in finding.fix
    assert wc.check_votes(frame(rows), numeric=True).ok
    frame(rows).to_csv(tmp_path / "v.csv", index=False)
    assert found(wc.check_votes(tmp_path / "v.csv"))["numeric-labels-as-classes"].severity == "warning"
    assert wc.check_votes(tmp_path / "v.csv", numeric=True).ok


def test_many_whole_numbers_are_hardly_classes() -> None:
    rows = [(f"t{n}", worker, n + shift) for n in range(40) for shift, worker in enumerate("xyz")]
    assert only(rows, "numeric-labels-as-classes").severity == "warning"
    few = [(task, worker, label % 5) for task, worker, label in rows]
    assert "numeric-labels-as-classes" not in found(wc.check_votes(frame(few)))


def test_mixed_types() -> None:
    rows = [*GOOD, (7, "w", "a"), (7, "x", 3)]
    examination = wc.check_votes(frame(rows))
    mixed = [finding for finding in examination.errors if finding.name == "mixed-types"]
    assert [finding.message for finding in mixed] == [
        "the column 'task' mixes int and str",
        "the column 'label' mixes int and str",
    ]
    assert "13 tasks" in examination.summary, "it goes on with text"


def test_ids_outside_the_given_vocabulary() -> None:
    examination = wc.check_votes(frame([*GOOD, GOOD[0]]), classes=["a", "b"])
    assert {finding.name for finding in examination.errors} == {"unknown-ids", "duplicate-votes"}
    assert "'c'" in found(examination)["unknown-ids"].message


# ---------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("", "empty-file"),
        ("task,worker,label\n", "empty-file"),
        ("q,who,what\n1,ann,cat\n", "missing-column"),
        ("item,question,worker,label\n1,1,ann,cat\n", "missing-column"),
        ("task,worker,label\n1,2\n", "unreadable"),
        ("task,worker,label\n,,\n", "empty-column"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, name: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(content)
    examination = wc.check_votes(path)
    assert name in {finding.name for finding in examination.errors}
    assert not examination.ok


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    examination = wc.check_votes(tmp_path / "votes.csv")
    assert [finding.name for finding in examination.findings] == ["unreadable"]
    assert "there is no file" in str(examination)


def test_mixed_types_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text("".join(json.dumps({"task": task, "worker": "x", "label": "p"}) + "\n" for task in (1, "b")))
    assert found(wc.check_votes(path))["mixed-types"].severity == "error"


def test_what_is_no_table() -> None:
    assert not wc.check_votes(42).ok


def test_frames_without_rows_or_columns() -> None:
    assert "empty-file" in found(wc.check_votes(frame([])))
    assert "missing-column" in found(wc.check_votes(pd.DataFrame({"task": [1]})))
    twice = frame(GOOD).set_axis(["task", "label", "label"], axis=1)
    assert "missing-column" in found(wc.check_votes(twice, worker="label"))
    assert wc.check_votes(frame(GOOD).set_axis(["item", 1, "label"], axis=1), worker="1").ok


def test_recognised_columns_are_told() -> None:
    renamed = frame(GOOD).rename(columns={"task": "item"})
    assert [finding.message for finding in wc.check_votes(renamed).notes] == ["read 'item' as the task column"]


# ---------------------------------------------------------------------- what makes the answer less sure


@pytest.mark.parametrize("twin", ["A", " a", "a ", "A ", "\ta"])
def test_labels_alike(twin: str) -> None:
    finding = only([*GOOD, ("t0", "v", twin), ("t1", "v", "b")], "labels-differ-by-case-or-space")
    assert (finding.severity, finding.count) == ("warning", 2)
    assert set(finding.examples) == {"a", twin}


def test_ids_alike() -> None:
    finding = only([*GOOD, ("T0", "W ", "a"), ("t1", "W ", "b")], "ids-differ-by-case-or-space")
    assert (finding.count, set(finding.examples)) == (4, {"t0", "T0", "W "})


def test_a_quotation_mark_that_is_never_closed(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text('task,worker,label\nt1,ann,"cat\nt2,ann,dog\nt3,ann,"cat"\n')
    finding = found(wc.check_votes(path))["line-breaks"]
    assert (finding.severity, finding.count) == ("warning", 1)


def test_words_for_no_answer() -> None:
    assert set(only([*GOOD, ("t0", "v", "N/A"), ("t1", "v", "?")], "labels-look-missing").examples) == {"?", "N/A"}


def test_one_vote_workers() -> None:
    few = only([*GOOD, ("t0", "new", "a")], "one-vote-workers")
    assert (few.severity, few.count, few.examples) == ("note", 1, ("new",))
    many = only([*GOOD, *((f"t{n}", f"new{n}", "a") for n in range(9))], "one-vote-workers")
    assert (many.severity, many.count) == ("warning", 9)


def test_one_vote_tasks() -> None:
    few = only([*GOOD, ("new", "w", "a")], "one-vote-tasks")
    assert (few.severity, few.examples) == ("note", ("new",))
    assert only([*GOOD, *((f"new{n}", "w", "a") for n in range(20))], "one-vote-tasks").severity == "warning"


def test_one_answer_workers() -> None:
    votes = [*GOOD, *((f"t{n}", "stuck", "a") for n in range(5))]
    finding = only(votes, "one-answer-workers")
    assert (finding.severity, finding.examples) == ("warning", ("stuck",))
    assert "one-answer-workers" not in found(wc.check_votes(frame(votes[:-1]))), "four votes show no habit"


def test_one_answer_is_fine_where_others_agree() -> None:
    votes = [(f"t{n}", worker, "a" if n < 8 else "b") for n in range(12) for worker in "xyz"]
    votes += [(f"t{n}", "right", "a") for n in range(8)]
    assert "one-answer-workers" not in found(wc.check_votes(frame(votes)))


def test_one_answer_workers_among_numbers() -> None:
    rng = np.random.default_rng(0)
    votes = [(f"t{n}", worker, n + rng.normal()) for n in range(12) for worker in "xyz"]
    votes += [(f"t{n}", "stuck", 5.0) for n in range(12)]
    assert only(votes, "one-answer-workers", numeric=True).examples == ("stuck",)


def test_separate_groups() -> None:
    other = [(f"other {task}", f"other {worker}", label) for task, worker, label in GOOD[:8]]
    finding = only([*GOOD, *other], "disconnected-graph")
    assert (finding.severity, finding.count) == ("warning", 2)
    assert "2 groups" in finding.message
    assert "2 tasks outside the largest" in finding.message
    assert set(finding.examples) == {"other t0", "other t1"}


def test_one_class_and_one_worker() -> None:
    examination = wc.check_votes(frame([(f"t{n}", "ann", "cat") for n in range(3)]))
    assert {"single-class", "single-worker"} <= {finding.name for finding in examination.warnings}


def test_classes_and_tasks_that_were_given() -> None:
    tasks = [*(f"t{n}" for n in range(12)), "extra"]
    examination = wc.check_votes(frame(GOOD), classes=["a", "b", "c", "d"], tasks=tasks)
    assert found(examination)["unused-classes"].examples == ("d",)
    assert found(examination)["no-vote-tasks"].examples == ("extra",)
    assert examination.ok


def test_rare_classes() -> None:
    votes = [(task, worker + again, label) for task, worker, label in GOOD for again in ("", "2", "3")]
    finding = only([*votes, ("t0", "v", "odd"), ("t1", "v", "a")], "rare-class")
    assert (finding.severity, finding.examples) == ("note", ("odd",))


def test_a_crowd_without_worker_ids() -> None:
    crowd = wc.Crowd.from_counts([[2, 1], [0, 3]], classes=["no", "yes"])
    assert wc.check_votes(crowd).findings == ()


def test_a_crowd_without_votes() -> None:
    assert [finding.name for finding in wc.check_votes(wc.Crowd.from_triples([], tasks=["a"])).errors] == ["empty-file"]


def test_repeats_in_a_crowd_are_there_by_choice() -> None:
    crowd = wc.Crowd.from_triples([*GOOD, GOOD[0]], duplicates="keep")
    assert wc.check_votes(crowd).ok
    assert [finding.name for finding in wc.check_votes(crowd).notes] == ["duplicate-votes"]


def test_text_and_table() -> None:
    examination = wc.check_votes(frame([*GOOD, GOOD[0], ("t0", "new", "A")]))
    text = str(examination)
    assert text.splitlines()[1] == "1 error, 1 warning, 1 note"
    assert text.index("duplicate-votes") < text.index("labels-differ") < text.index("one-vote-workers")
    table = examination.to_frame()
    assert table["severity"].tolist() == ["error", "warning", "note"]
    assert table.columns.tolist() == ["severity", "name", "count", "message", "examples", "fix"]


ids = st.one_of(st.none(), st.sampled_from(["a", "A", " a", "b", "", "1", "2.5"]))


@given(st.lists(st.tuples(ids, ids, ids), max_size=30), st.booleans())
def test_what_passes_can_be_read_and_what_fails_cannot(rows: list[tuple[Any, Any, Any]], drop: bool) -> None:
    """`ok` means that the same options build a crowd, and nothing else does."""
    options: dict[str, Any] = {"missing": "drop" if drop else "error"}
    examination = wc.check_votes(frame(rows), **options)
    try:
        crowd = wc.Crowd.from_frame(frame(rows), **options)
        readable = crowd.n_votes > 0
    except wc.errors.InputError:
        readable = False
    assert readable == examination.ok


@pytest.mark.data
def test_real_datasets(data_folder: Path) -> None:
    assert wc.check_votes(data_folder / "labelme").ok
    assert found(wc.check_votes(data_folder / "weather_amt"))["duplicate-votes"].count == 5
    assert wc.check_votes(data_folder / "movie_reviews").ok


def test_counts_are_those_of_reading(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("task,worker,label\n1,a,x\n1,a,x\n1,a,y\n1,b,x\n2,a,y\n2,b,\n")
    for rule, n in (("first", 3), ("last", 3), ("distinct", 4), ("keep", 5)):
        options: dict[str, Any] = {"duplicates": rule, "missing": "drop"}
        examination = wc.check_votes(path, **options)
        assert examination.summary == repr(wc.read(path, **options))
        assert f"{n} votes" in examination.summary
        assert found(examination)["duplicate-votes"].count == 1


def test_workers_with_the_very_same_answers_are_named() -> None:
    rng = np.random.default_rng(0)
    model = rng.integers(0, 3, 40)
    votes = [(task, who, int(model[task])) for task in range(40) for who in ("gpt:a", "gpt:b")]
    votes += [(task, who, int(rng.integers(0, 3))) for task in range(40) for who in ("ann", "bob")]
    finding = only(votes, "identical-workers")
    assert finding.examples == ("gpt:a", "gpt:b")
    assert "identical-workers" not in found(wc.check_votes(frame([row for row in votes if row[0] < 19]))), "too few"
    assert "identical-workers" not in found(
        wc.check_votes(frame([row for row in votes if row != (3, "gpt:a", int(model[3]))]))
    )
    stuck = [(task, who, 0) for task in range(40) for who in ("one", "two")]
    assert only([*votes, *stuck], "identical-workers").examples == ("gpt:a", "gpt:b")
    agreed = [(task, who, int(model[task])) for task in range(40) for who in ("ann", "bob", "cy")]
    assert "identical-workers" not in found(wc.check_votes(frame(agreed))), "all are right"


def names(report: ValidationReport) -> set[str]:
    return {finding.name for finding in report.findings}


def test_comparisons_are_recognised_and_checked(tmp_path: Path) -> None:
    (tmp_path / "arena.csv").write_text(
        "judge,model_a,model_b,winner\nann,a,b,a\nann,a,b,b\nann,c,d,\nbob,b,a,tie\nbob,c,d,c\n", encoding="utf-8"
    )
    report = wc.check_votes(tmp_path / "arena.csv")
    assert {"missing-labels", "conflicting-votes", "disconnected-graph", "columns"} <= names(report)
    assert report.summary.startswith("Comparisons(4 comparisons")
    assert not report.ok
    mended = wc.check_votes(tmp_path / "arena.csv", missing="drop", duplicates="last")
    assert mended.ok
    assert "disconnected-graph" in names(mended)


def test_comparisons_in_memory_are_checked() -> None:
    votes = [("ann", "a", "b", "a"), ("ann", "b", "a", "a"), ("bob", "c", "d", "c")]
    frame = pd.DataFrame(votes, columns=["worker", "left", "right", "label"])
    assert {"swapped-comparisons", "disconnected-graph"} <= names(wc.check_votes(frame))
    assert "disconnected-graph" in names(wc.check_votes(wc.Comparisons.from_tuples(votes)))


def test_a_label_that_names_no_item_is_an_error() -> None:
    report = wc.check_votes({"left": ["a"], "right": ["b"], "label": ["c"]})
    assert not report.ok
    assert "neither an item of its row" in report.errors[0].message


def test_label_sets_are_recognised_and_checked(tmp_path: Path) -> None:
    (tmp_path / "tags.csv").write_text(
        "task,worker,labels\nt1,ann,a|b\nt1,ann,a\nt1,bob,\nt2,bob,b\n", encoding="utf-8"
    )
    report = wc.check_votes(tmp_path / "tags.csv")
    assert [finding.name for finding in report.errors] == ["duplicate-votes"]
    assert report.errors[0].count == 1
    assert wc.check_votes(tmp_path / "tags.csv", duplicates="first").ok
    sets = wc.LabelSetCrowd.from_frame({"task": [1, 1], "worker": ["a", "b"], "labels": ["x", "x|y"]})
    assert wc.check_votes(sets).summary.startswith("LabelSetCrowd(2 votes")


FLOATS = "task,worker,label\nt1,ann,1\nt1,bob,1\nt1,dora,1.0\n2,ann,Cat\n2.0,dora,cat\n2,7,Cat\n"


def test_equal_numbers_are_reported_with_the_workers_who_wrote_the_longer_forms(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(FLOATS)
    messages = {finding.name: finding for finding in wc.check_votes(tmp_path / "votes.csv").warnings}
    label, task = messages["labels-equal-as-numbers"], messages["ids-equal-as-numbers"]
    assert label.message.endswith("('1', '1.0'); 1 worker gave '1.0' ('dora')")
    assert task.message.endswith("('2', '2.0'); 1 worker voted on '2.0' ('dora')")
    assert label.fix == task.fix == messages["labels-differ-by-case-or-space"].fix
    assert "--normalise" in label.fix


def test_workers_that_are_equal_as_numbers() -> None:
    report = wc.check_votes({"task": ["a", "a"], "worker": ["7", "7.0"], "label": ["x", "y"]})
    assert "2 worker ids are equal as numbers" in str(report)
    assert "normalise" not in str(report), "from_frame has no such option"


def test_normalise_resolves_what_it_is_advised_for(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(FLOATS)
    report = wc.check_votes(tmp_path / "votes.csv", normalise=True)
    names = {finding.name for finding in report.findings}
    assert "spellings" in names
    assert not {name for name in names if name.endswith(("-as-numbers", "-by-case-or-space"))}


def test_normalise_is_refused_for_comparisons() -> None:
    with pytest.raises(UsageError, match="applies to ordinary votes only"):
        wc.check_votes({"left": ["a"], "right": ["b"], "winner": ["a"]}, normalise=True)


MESSY = "photo,user,user_name,category\np1,ann,x,1\np1,ann,x,1.0\np1,bob,y,\nP1,bob,y,2\np1,bob,y,1\np2,bob,y,1\n"


def test_rows_are_checked_although_a_column_is_ambiguous_or_has_no_known_name(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(MESSY)
    names = {finding.name for finding in wc.check_votes(tmp_path / "votes.csv").errors}
    assert names == {"missing-column", "missing-labels", "conflicting-votes"}


@pytest.mark.parametrize("options", [{}, {"task": "photo"}, {"worker": "user_name"}, {"normalise": True}])
def test_the_options_resolve_all_errors_together(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(MESSY)
    found = find_options(path, wc.check_votes(path, **options), **options)
    assert found["duplicates"] == "last"
    report = wc.check_votes(path, **(options | found))
    assert report.ok
    assert find_options(path, report, **(options | found)) == {}
    assert wc.read(path, **(options | found)).n_votes == 3


def test_no_options_for_votes_without_problems_or_columns(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    for content in ("task,worker,label\nt1,ann,cat\nt1,bob,dog\n", "a,b,c\nt1,ann,cat\n"):
        path.write_text(content)
        assert find_options(path, wc.check_votes(path)) == {}


def test_a_wide_table_is_checked_as_one(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    rows = "".join(f"t{number},{'ab'[number % 2]},{'aB'[number % 2]},\n" for number in range(30))
    path.write_text(f"task,ann,bob,cy\n{rows}")
    report = wc.check_votes(path)
    assert [finding.name for finding in report.errors] == ["missing-column"]
    assert "labels-differ-by-case-or-space" in {finding.name for finding in report.findings}
    assert "left out 1 worker column without votes" in str(report)
    options = find_options(path, report)
    assert options == {"format": "wide", "normalise": True}
    assert wc.read(path, **options).n_classes == 2


def test_a_table_of_features_is_not_taken_for_votes(tmp_path: Path) -> None:
    path = tmp_path / "X.csv"
    path.write_text("task,width,height\n" + "".join(f"t{number},{number}.5,{number + 0.25}\n" for number in range(30)))
    assert find_options(path, wc.check_votes(path)) == {}
