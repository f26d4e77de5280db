"""The report is right against a recount, says what it leaves out, and shows whatever it is given without obeying it."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.errors import InputError, MissingExtra, UsageError
from wisecrowd.report import _overview, _tasks, _words, _workers

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    '" onmouseover="alert(4)" x=\'',
    "{{ 7 * 7 }}{% for x in y %}",
    '=HYPERLINK("http://example.com", "click")',
    "line\nbreak\ttab\x00nul\x1b[31m",
    "\u202eright-to-left override\u202c",
    "שלום עולם",
    "a\u2028b\u2029c",
    "x" * 10_000,
    "&lt;b&gt; &amp;",
    "]]> --> <!--",
    "\ud800 alone",
]


#: A figure that is none, in text or in a picture.
NAN = re.compile(r"\bnan\b")


@pytest.fixture(scope="module")
def made() -> Any:
    """Good and bad workers, of whom everything is known."""
    kinds = ["expert"] * 5 + ["noisy(0.75)"] * 12 + ["spammer"] * 2 + ["adversary", "copier(1)"]
    return wc.simulate_crowd(n_tasks=240, workers=kinds, labels_per_task=5, n_classes=4, random_state=2)


@pytest.fixture(scope="module")
def votes(made: Any) -> pd.DataFrame:
    return made.crowd.to_frame()


@pytest.fixture(scope="module")
def truth(made: Any) -> pd.Series:
    """Of half of the tasks."""
    return made.truth.iloc[::2]


@pytest.fixture(scope="module")
def page(made: Any, truth: pd.Series, page_of: Any) -> Any:
    texts = {task: f"Is this one {task}?" for task in made.crowd.tasks}
    built = report.build(made.crowd, truth=truth, texts=texts, title="A test", command="wisecrowd report x.csv")
    return page_of(built.html)


# ---------------------------------------------------------------------- every figure, counted again


def tiles(page: Any) -> dict[str, str]:
    said = re.findall(r"<dt>(.*?)</dt><dd><strong>(.*?)</strong> <span>(.*?)</span>", page.html)
    return {what: value for what, value, _ in said} | {f"{what} more": more for what, _, more in said}


def test_the_overview_is_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, made: Any) -> None:
    found = tiles(page)
    workers = wc.diagnosis(made.crowd).workers
    flagged = workers[workers["flags"] != ""]
    assert found["votes"] == f"{len(votes):,}"
    assert found["votes more"] == f"{len(votes) / votes['task'].nunique():.1f} for each task"
    assert found["tasks"] == str(votes["task"].nunique())
    assert found["workers"] == str(votes["worker"].nunique())
    assert found["classes"] == str(votes["label"].nunique())
    assert found["workers more"] == f"{len(flagged)} to look at"
    labels = wc.DawidSkene().fit(made.crowd).labels_
    right = (labels[truth.index] == truth).mean()
    assert found["right"] == _words.percent(right)
    said = page.said("overview")
    assert f"the labels of {(labels[truth.index] == truth).sum()} are right" in said
    assert f"half of the workers gave {votes['worker'].value_counts().median():,.0f} or more" in said
    share = votes["worker"].isin(flagged.index).mean()
    assert f"{len(flagged)} workers are worth a look; {_words.percent(share)} of all votes come from them" in said


def test_the_histograms_are_a_recount(votes: pd.DataFrame) -> None:
    counts = votes["worker"].value_counts()
    bars = _overview.binned(counts.to_numpy())
    assert sum(bar["n"] for bar in bars) == len(counts)
    for bar in bars:
        low, *high = (int(part.replace(",", "")) for part in bar["label"].split(" to "))
        assert bar["n"] == counts.between(low, high[0] if high else low).sum()
    assert [bar["label"] for bar in _overview.binned(np.array([0, 3, 3]))] == ["0", "1", "2", "3"]
    assert [bar["n"] for bar in _overview.binned(np.array([0, 3, 3]))] == [1, 0, 0, 2]


def test_workers_are_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, made: Any) -> None:
    rows = page.rows("worker-table")
    assert page.captions["worker-table"].startswith("All 21 workers.")
    assert sorted(row["Worker"].text for row in rows) == sorted(votes["worker"].unique())
    table = wc.diagnosis(made.crowd).workers
    others = votes.merge(votes, on="task")
    others = others[others["worker_x"] != others["worker_y"]]
    agreement = (others["label_x"] == others["label_y"]).groupby(others["worker_x"]).mean()
    known = votes[votes["task"].isin(truth.index)]
    right = known["task"].map(truth) == known["label"]
    for row in rows:
        who = row["Worker"].text
        mine = votes[votes["worker"] == who]
        assert row["Votes"].text == str(len(mine))
        assert float(row["Agreement"].value) == pytest.approx(agreement[who])
        assert row["Agreement"].text == _words.percent(agreement[who])
        told = right[known["worker"] == who]
        assert row["Right of known"].text == f"{_words.percent(told.mean())} {told.sum()} of {len(told)}"
        top = mine["label"].value_counts()
        assert row["Most given label"].text.split()[0] in top[top == top.max()].index
        assert row["Most given label"].text.endswith(_words.percent(top.max() / len(mine)))
        expected = table.loc[who]
        assert row["Accuracy"].text == (f"{expected['accuracy']:.2f} {expected['low']:.2f}–{expected['high']:.2f}")
        assert row["Spammer score"].text == f"{expected['spammer_score']:.2f}"
        for flag in filter(None, expected["flags"].split(", ")):
            assert flag in row["Flags and why"].text
        assert expected["why"] in row["Flags and why"].text
    flagged = [bool(table.loc[row["Worker"].text, "flags"]) for row in rows]
    assert flagged == sorted(flagged, reverse=True), "who should be looked at comes first"
    assert any(flagged)


def test_the_matrix_of_a_worker_is_a_recount(page: Any, votes: pd.DataFrame, made: Any) -> None:
    found = wc.diagnosis(made.crowd)
    names = page.data["classes"]
    assert names == sorted(votes["label"].unique())
    for place, row in enumerate(page.rows("worker-table")):
        card, who = page.data["workers"][place], row["Worker"].text
        assert card["name"] == who
        said = votes.loc[votes["worker"] == who, "label"].value_counts()
        assert card["said"] == [int(said.get(name, 0)) for name in names]
        matrix = found.of_workers.confusion_of([made.crowd.workers.get_loc(who)])[0]
        assert np.array(card["matrix"]).reshape(4, 4) == pytest.approx(100 * matrix, abs=0.501)


def test_tasks_are_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, made: Any) -> None:
    rows = page.rows("task-table")
    assert page.captions["task-table"].startswith("All 240 tasks.")
    found = wc.diagnosis(made.crowd).tasks
    for row in rows:
        task = row["Task"].text
        mine = votes.loc[votes["task"] == task, "label"].value_counts()
        n, *tally = row["Votes"].text.replace("\u2068", "").replace("\u2069", "").split(maxsplit=1)
        assert int(n) == mine.sum()
        assert dict(part.split(" ×") for part in tally[0].split(", ")) == {name: str(k) for name, k in mine.items()}
        share = mine / mine.sum()
        entropy = -(share * np.log(share)).sum() + (len(mine) - 1) / (2 * mine.sum())
        assert float(row["Dispute"].value) == pytest.approx(min(entropy / np.log(4), 1))
        assert row["Label"].text == found.loc[task, "label"]
        assert row["Kind"].text == found.loc[task, "kind"]
        assert row["Text"].text == f"Is this one {task}?"
        if task in truth.index:
            wrong = truth[task] != found.loc[task, "label"]
            assert row["Known truth"].text == truth[task] + (" wrong" if wrong else "")
        else:
            assert row["Known truth"].text == "–"
    kinds = {row["Kind"].text: int(row["Tasks"].text) for row in page.rows("table 3")}
    assert kinds == found["kind"].value_counts().to_dict()


def test_classes_are_a_recount(page: Any, votes: pd.DataFrame, made: Any) -> None:
    found = wc.diagnosis(made.crowd)
    counts = votes["label"].value_counts()
    for row in page.rows("class-table"):
        assert int(row["Votes for it"].text) == counts[row["Class"].text]
        assert row["Share of votes"].text == _words.percent(counts[row["Class"].text] / len(votes))
        assert float(row["Recognised"].value) == pytest.approx(
            found.confusion.loc[row["Class"].text, row["Class"].text]
        )
    heat = page.tables["table 5"]
    for true, row in zip(found.confusion.index, heat[1:], strict=True):
        assert [cell.text for cell in row[1:]] == [_words.percent(share) for share in found.confusion.loc[true]]


def test_methods_are_those_of_the_comparison(page: Any, made: Any, truth: pd.Series) -> None:
    from wisecrowd.diagnose.choosing import compare

    found = compare(made.crowd, truth=truth)
    rows = page.rows("method-table")
    assert [row["Method"].text.split()[0] for row in rows] == found.table.index.tolist()
    for row, (name, expected) in zip(rows, found.table.iterrows(), strict=True):
        assert ("use this" in row["Method"].text) == (name == found.best)
        assert float(row["Behind the best"].value) == pytest.approx(expected["behind"])
        assert row["Accuracy"].text == f"{expected['accuracy']:.3f}"
    assert found.sentence in page.said("methods")
    assert f"wisecrowd aggregate … -m {found.best}" in page.said("next")


def test_advice_names_what_should_be_looked_at(page: Any, made: Any) -> None:
    found = wc.diagnosis(made.crowd)
    said = page.said("next")
    assert f"{(found.workers['flags'] != '').sum()} workers, or stop inviting them" in said
    undecided = found.tasks[found.tasks["kind"] == "undecided"]
    if len(undecided):
        assert f"Get another vote on {len(undecided)} task" in said
        assert undecided["confidence"].idxmin() in said


def test_how_it_was_made_can_be_repeated(page: Any, made: Any) -> None:
    said = page.said("made")
    assert "wisecrowd report x.csv" in said
    assert made.crowd.digest in said
    assert f"numpy {np.__version__}" in said
    assert "Dawid and Skene 1979" in said
    assert "@article{dawid1979maximum" in said


# ---------------------------------------------------------------------- large crowds


def test_a_large_crowd_is_summarised_and_said_to_be(page_of: Any) -> None:
    """A hundred thousand votes of two thousand workers: under six megabytes, and nothing is left out silently."""
    rng = np.random.default_rng(0)
    n_tasks, n_workers, n_classes = 20_000, 2_000, 30
    true = rng.integers(n_classes, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), 5)
    said = np.where(rng.random(100_000) < 0.7, true[task], rng.integers(n_classes, size=100_000))
    worker = np.concatenate([rng.choice(n_workers, 5, replace=False) for _ in range(n_tasks)])
    frame = pd.DataFrame({"task": task, "worker": worker, "label": said})
    made = report.build(frame, compare=False, texts=dict.fromkeys(range(n_tasks), "Lorem ipsum " * 200))
    assert len(made.html.encode()) < 3e6
    page = page_of(made.html)
    assert page.captions["worker-table"].startswith("500 of 2,000 workers: the ")
    assert page.captions["task-table"].startswith("500 of 20,000 tasks: ")
    assert "20 of 30 classes" in page.captions["class-table"]
    assert len(page.rows("worker-table")) == len(page.data["workers"]) == 500
    assert len(page.rows("task-table")) == 500
    counts = frame["worker"].value_counts()
    unflagged = [int(row["Worker"].text) for row in page.rows("worker-table") if not row["Flags and why"].text]
    assert counts[unflagged].min() >= counts[~counts.index.isin(map(int, _names(page)))].max()
    assert "(2,400 characters)" in page.rows("task-table")[0]["Text"].text


def _names(page: Any) -> list[str]:
    return [row["Worker"].text for row in page.rows("worker-table")]


def test_tasks_of_every_ranking_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tasks, "TASKS", 6)
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.random((50, 3)), columns=["difficulty", "entropy", "uncertainty"])
    table["n_labels"] = 3
    chosen = set(_tasks._chosen(table).tolist())
    assert len(chosen) == 6
    assert {int(table[name].idxmax()) for name in _tasks.RANKINGS.values()} <= chosen


def test_methods_are_compared_on_a_part_of_many_votes(made: Any, page_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.report import _methods

    monkeypatch.setattr(_methods, "VOTES", 600)
    monkeypatch.setattr("wisecrowd.diagnose.choosing.CANDIDATES", ("dawid-skene", "majority-vote"))
    monkeypatch.setattr("wisecrowd.diagnose.choosing.LEARNERS", ("crowd-lab",))
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(240, 2)), index=made.crowd.tasks)
    page = page_of(report.build(made.crowd, X=X).html)
    assert "600 of 1,200 votes: all those on 120 of 240 tasks" in page.said("methods")
    assert any(row["Method"].text.startswith("crowd-lab") for row in page.rows("method-table"))


def test_more_flags_than_room_are_told(made: Any, page_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workers, "WORKERS", 2)
    page = page_of(report.build(made.crowd, compare=False).html)
    n = (wc.diagnosis(made.crowd).workers["flags"] != "").sum()
    assert page.captions["worker-table"].startswith(f"2 of 21 workers: of the {n} with flags those with most votes.")


# ---------------------------------------------------------------------- small and odd crowds


def test_tasks_and_workers_without_votes_have_a_row(made: Any, page_of: Any) -> None:
    crowd = wc.Crowd.from_frame(
        made.crowd.to_frame().iloc[:150],
        tasks=[*made.crowd.tasks, "nobody looked"],
        workers=[*made.crowd.workers, "idle"],
    )
    page = page_of(report.build(crowd, compare=False).html)
    idle = next(row for row in page.rows("worker-table") if row["Worker"].text == "idle")
    assert (idle["Votes"].text, idle["Agreement"].text) == ("0", "–")
    assert not NAN.search(re.sub(r"<script>.*</script>", "", page.html, flags=re.DOTALL))
    assert (
        f"Get another vote on {(wc.diagnosis(crowd).tasks['kind'].isin(['undecided', 'unlabelled'])).sum()} tasks"
        in (page.said("next"))
    )


@pytest.mark.filterwarnings("ignore::wisecrowd.errors.DataWarning")
@pytest.mark.parametrize(
    "rows",
    [
        [("t1", "ann", "cat")],
        [("t1", "ann", "cat"), ("t1", "bob", "cat")],
        [("t1", "ann", "cat"), ("t2", "ann", "dog")],
        [(f"t{n % 4}", who, "cat" if n % 3 else "dog") for n in range(4) for who in ("ann", "bob", "cy")][:10],
        [(n, n, n) for n in range(12)],
    ],
)
def test_the_smallest_crowds_have_a_page(rows: list[tuple[Any, ...]], page_of: Any) -> None:
    page = page_of(report.build(wc.Crowd.from_triples(rows)).html)
    assert tiles(page)["votes"] == str(len(rows))
    assert not NAN.search(re.sub(r"<script>.*</script>", "", page.html, flags=re.DOTALL))


def test_whoever_opens_the_page_is_warned_as_well(page_of: Any) -> None:
    with pytest.warns(wc.errors.DataWarning, match="no task has two votes"):
        page = page_of(report.build(wc.Crowd.from_triples([(n, n, n % 2) for n in range(12)])).html)
    assert "Before you believe it: no task has two votes" in page.said("overview")


def test_what_cannot_be_reported_is_refused(made: Any) -> None:
    with pytest.raises(InputError, match="no votes"):
        report.build(made.crowd.take([]))
    numbers = wc.Crowd.from_frame({"task": [1], "worker": [1], "label": [0.5]}, numeric=True)
    with pytest.raises(UsageError, match="classes and worker ids"):
        report.build(numbers)
    with pytest.raises(InputError, match="none of the 1 tasks with truth"):
        report.build(made.crowd, truth={"elsewhere": "c0"}, compare=False)
    with pytest.raises(InputError, match="none of the texts"):
        report.build(made.crowd, texts={"elsewhere": "text"}, compare=False)
    with pytest.raises(UsageError, match="by task"):
        report.build(made.crowd, texts=["text"], compare=False)


def test_truth_of_a_class_that_nobody_chose_counts_as_wrong(page_of: Any) -> None:
    crowd = wc.Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "cat"), ("t1", "bob", "cat")])
    page = page_of(report.build(crowd, truth={"t1": "cat", "t2": "unicorn"}, compare=False).html)
    assert tiles(page)["right"] == "50%"
    assert page.rows("worker-table")[0]["Right of known"].text == "50% 1 of 2"


def test_truth_is_matched_across_types_of_ids(page_of: Any) -> None:
    crowd = wc.Crowd.from_triples([("1", "ann", "7"), ("2", "ann", "8"), ("2", "bob", "8")])
    page = page_of(report.build(crowd, truth={1: 7, 2: 7}, compare=False).html)
    assert tiles(page)["right"] == "50%"


def test_without_jinja2_it_says_what_to_install(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from wisecrowd.report import _page

    _page._templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[report\]"):
        report.build(made.crowd)
    _page._templates.cache_clear()


# ---------------------------------------------------------------------- hostile data


@pytest.fixture(scope="module")
def hostile() -> report.Report:
    """Every name of a task, worker and class, every text and the title tries something."""
    rows = [
        (f"{task}{n}", worker, HOSTILE[(n + (place % 4 == 0)) % len(HOSTILE)])
        for n, task in enumerate(HOSTILE)
        for place, worker in enumerate(HOSTILE)
        if "\ud800" not in worker + task + HOSTILE[n] + HOSTILE[(n + 1) % len(HOSTILE)]
    ]
    texts = {f"{task}{n}": HOSTILE[n - 3] for n, task in enumerate(HOSTILE[:-1])}
    return report.build(
        wc.Crowd.from_triples(rows), texts=texts, title=HOSTILE[0] + HOSTILE[-1], command=HOSTILE[1] + HOSTILE[-1]
    )


def test_hostile_names_are_shown_and_never_run(hostile: report.Report, page: Any, page_of: Any) -> None:
    harmless, page = page, page_of(hostile.html)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in harmless.tags}
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"style", "src", "srcdoc", "srcset", "action", "formaction"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    names = _names(page)
    for text in HOSTILE[:6]:
        assert text in names
    assert "line\\nbreak\\ttab\\x00nul\\x1b[31m" in names
    assert any(name.startswith("\\u202eright-to-left") for name in names)
    assert "שלום עולם" in names
    assert "a\\u2028b\\u2029c" in names
    assert any(name.startswith("xxx") and name.endswith("xxx (10,000 characters)") for name in names)


def test_no_control_character_nor_endless_text_reaches_the_page(hostile: report.Report) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029\ud800-\udfff]", hostile.html)
    assert "x" * 200 not in hostile.html
    assert "{{ 7 * 7 }}" in html.unescape(hostile.html)
    assert "49{%" not in hostile.html


def test_the_data_of_the_script_cannot_end_it(hostile: report.Report, page_of: Any) -> None:
    raw = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile.html, re.DOTALL)
    assert raw is not None
    assert not set("<>&") & set(raw.group(1))
    assert raw.group(1).isascii()
    assert "<script>alert(1)</script>" in [worker["name"] for worker in page_of(hostile.html).data["workers"]]


def test_the_policy_lets_nothing_in_or_out(hostile: report.Report) -> None:
    import base64
    import hashlib

    policy = html.unescape(re.search(r'Security-Policy" content="(.*?)"', hostile.html).group(1))  # type: ignore[union-attr]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", hostile.html, re.DOTALL).group(1)  # type: ignore[union-attr]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    assert not re.search(r"url\(|@import|https?:", re.search(r"<style>(.*?)</style>", hostile.html, re.DOTALL).group(1))  # type: ignore[union-attr]


# ---------------------------------------------------------------------- files


def test_it_is_saved_whole_and_known_again(tmp_path: Path, made: Any) -> None:
    built = report.build(made.crowd, compare=False)
    path = built.save(tmp_path / "new" / "page.html")
    assert path.read_text(encoding="utf-8") == built.html
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    assert report.is_report(path)
    path.write_text("<!doctype html>", encoding="utf-8")
    assert not report.is_report(path)


def test_words() -> None:
    assert _words.percent(0.999) == "99.9%"
    assert _words.percent(0.004) == "0.4%"
    assert (_words.percent(1.0), _words.percent(0.0), _words.percent(float("nan"))) == ("100%", "0%", "–")
    assert _words.shortened("a" * 100, 20) == f"{'a' * 15}…aaaaa (100 characters)"
    assert _words.shortened("a" * 30, 20) == "a" * 30, "a cut would save nothing"
    assert _words.spelled("a\u200db\x00") == "a\u200db\\x00"
    assert _words.spelled("a\nb", lines=True) == "a\nb"
    assert (
        _words.some_of(5, 12_345, "workers", "those with most votes") == "5 of 12,345 workers: those with most votes."
    )


# ---------------------------------------------------------------------- a real crowd


@pytest.mark.data
def test_the_page_of_labelme_is_right(dataset: Any, page_of: Any) -> None:
    data = dataset("labelme")
    page = page_of(report.build(data.crowd, truth=data.truth, compare=False).html)
    votes, found = data.crowd.to_frame(), tiles(page)
    assert (found["votes"], found["tasks"]) == (f"{len(votes):,}", f"{votes['task'].nunique():,}")
    labels = wc.DawidSkene().fit(data.crowd).labels_
    known = data.truth[data.truth.index.isin(labels.index)]
    assert f"the labels of {(labels[known.index] == known).sum()} are right" in page.said("overview")
    counts = votes["worker"].value_counts()
    assert {row["Worker"].text: int(row["Votes"].text) for row in page.rows("worker-table")} == counts.to_dict()
