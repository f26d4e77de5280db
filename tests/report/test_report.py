"""Figures of the report against a recount, hostile data, and saving."""

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
from wisecrowd.report import summary as _summary
from wisecrowd.report import tasks as _tasks
from wisecrowd.utils.text import describe_selection, escape_control_characters, format_number, format_percent, shorten

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


@pytest.fixture(scope="module")
def votes(simulated: Any) -> pd.DataFrame:
    return simulated.crowd.to_frame()


@pytest.fixture(scope="module")
def truth(simulated: Any) -> pd.Series:
    """Gold labels of half of the tasks."""
    return simulated.truth.iloc[::2]


@pytest.fixture(scope="module")
def page(simulated: Any, truth: pd.Series, page_of: Any) -> Any:
    texts = {task: f"Is this one {task}?" for task in simulated.crowd.tasks}
    built = report.build(simulated.crowd, truth=truth, texts=texts, title="A test", command="wisecrowd report x.csv")
    return page_of(built.html)


# ---------------------------------------------------------------------- every figure, counted again


def test_summary_equals_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, simulated: Any) -> None:
    observed = page.tiles
    workers = wc.diagnose_crowd(simulated.crowd).workers
    flagged = workers[workers["flags"] != ""]
    assert observed["votes"] == f"{len(votes):,}"
    assert observed["votes more"] == f"{len(votes) / votes['task'].nunique():.1f} per task"
    assert observed["tasks"] == str(votes["task"].nunique())
    assert observed["workers"] == str(votes["worker"].nunique())
    assert observed["classes"] == str(votes["label"].nunique())
    assert observed["workers more"] == f"{len(flagged)} flagged"
    labels = wc.DawidSkene().fit(simulated.crowd).labels_
    right = (labels[truth.index] == truth).mean()
    assert observed["accuracy"] == format_percent(right)
    text = page.section_text("summary")
    assert f"{(labels[truth.index] == truth).sum()} labels are right" in text
    assert f"the median worker gave {votes['worker'].value_counts().median():,.0f}" in text
    share = votes["worker"].isin(flagged.index).mean()
    assert f"{len(flagged)} workers are flagged; {format_percent(share)} of all votes come from them" in text


def test_histograms_equal_a_recount(votes: pd.DataFrame) -> None:
    counts = votes["worker"].value_counts()
    bars = _summary.count_in_bins(counts.to_numpy())
    assert sum(bar["n"] for bar in bars) == len(counts)
    for bar in bars:
        low, *high = (int(part.replace(",", "")) for part in bar["label"].split(" to "))
        assert bar["n"] == counts.between(low, high[0] if high else low).sum()
    assert [bar["label"] for bar in _summary.count_in_bins(np.array([0, 3, 3]))] == ["0", "1", "2", "3"]
    assert [bar["n"] for bar in _summary.count_in_bins(np.array([0, 3, 3]))] == [1, 0, 0, 2]


def test_workers_equal_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, simulated: Any) -> None:
    rows = page.rows("worker-table")
    assert page.captions["worker-table"].startswith("All 21 workers.")
    assert sorted(row["Worker"].text for row in rows) == sorted(votes["worker"].unique())
    table = wc.diagnose_crowd(simulated.crowd).workers
    others = votes.merge(votes, on="task")
    others = others[others["worker_x"] != others["worker_y"]]
    agreement = (others["label_x"] == others["label_y"]).groupby(others["worker_x"]).mean()
    on_gold = votes[votes["task"].isin(truth.index)]
    right = on_gold["task"].map(truth) == on_gold["label"]
    for row in rows:
        who = row["Worker"].text
        mine = votes[votes["worker"] == who]
        assert row["Votes"].text == str(len(mine))
        assert float(row["Agreement"].value) == pytest.approx(agreement[who])
        assert row["Agreement"].text == format_percent(agreement[who])
        gold_votes = right[on_gold["worker"] == who]
        assert (
            row["Accuracy on gold"].text
            == f"{format_percent(gold_votes.mean())} {gold_votes.sum()} of {len(gold_votes)}"
        )
        top = mine["label"].value_counts()
        assert row["Most frequent label"].text.split()[0] in top[top == top.max()].index
        assert row["Most frequent label"].text.endswith(format_percent(top.max() / len(mine)))
        expected = table.loc[who]
        assert row["Accuracy"].text == (f"{expected['accuracy']:.2f} {expected['low']:.2f}–{expected['high']:.2f}")
        assert row["Spammer score"].text == f"{expected['spammer_score']:.2f}"
        for flag in filter(None, expected["flags"].split(", ")):
            assert flag in row["Flags and reasons"].text
        assert expected["why"] in row["Flags and reasons"].text
    flagged = [bool(table.loc[row["Worker"].text, "flags"]) for row in rows]
    assert flagged == sorted(flagged, reverse=True), "who should be looked at comes first"
    assert any(flagged)


def test_matrix_of_a_worker_equals_a_recount(page: Any, votes: pd.DataFrame, simulated: Any) -> None:
    observed = wc.diagnose_crowd(simulated.crowd)
    names = page.data["classes"]
    assert names == sorted(votes["label"].unique())
    for place, row in enumerate(page.rows("worker-table")):
        card, who = page.data["workers"][place], row["Worker"].text
        assert card["name"] == who
        text = votes.loc[votes["worker"] == who, "label"].value_counts()
        assert card["label_counts"] == [int(text.get(name, 0)) for name in names]
        matrix = observed.worker_diagnosis.confusion_of([simulated.crowd.workers.get_loc(who)])[0]
        assert np.array(card["matrix"]).reshape(4, 4) == pytest.approx(100 * matrix, abs=0.501)


def test_tasks_equal_a_recount(page: Any, votes: pd.DataFrame, truth: pd.Series, simulated: Any) -> None:
    rows = page.rows("task-table")
    assert page.captions["task-table"].startswith("All 240 tasks.")
    observed = wc.diagnose_crowd(simulated.crowd).tasks
    for row in rows:
        task = row["Task"].text
        mine = votes.loc[votes["task"] == task, "label"].value_counts()
        n, *tally = row["Votes"].text.replace("\u2068", "").replace("\u2069", "").split(maxsplit=1)
        assert int(n) == mine.sum()
        assert dict(part.split(" ×") for part in tally[0].split(", ")) == {name: str(k) for name, k in mine.items()}
        share = mine / mine.sum()
        entropy = -(share * np.log(share)).sum() + (len(mine) - 1) / (2 * mine.sum())
        assert float(row["Disagreement"].value) == pytest.approx(min(entropy / np.log(4), 1))
        assert row["Label"].text == observed.loc[task, "label"]
        assert row["Kind"].text == observed.loc[task, "kind"]
        assert row["Text"].text == f"Is this one {task}?"
        if task in truth.index:
            wrong = truth[task] != observed.loc[task, "label"]
            assert row["Gold"].text == truth[task] + (" wrong" if wrong else "")
        else:
            assert row["Gold"].text == "–"
    kinds = {row["Kind"].text: int(row["Tasks"].text) for row in page.rows("table 3")}
    assert kinds == observed["kind"].value_counts().to_dict()


def test_classes_equal_a_recount(page: Any, votes: pd.DataFrame, simulated: Any) -> None:
    observed = wc.diagnose_crowd(simulated.crowd)
    counts = votes["label"].value_counts()
    for row in page.rows("class-table"):
        assert int(row["Votes"].text) == counts[row["Class"].text]
        assert row["Share of votes"].text == format_percent(counts[row["Class"].text] / len(votes))
        assert float(row["Recall"].value) == pytest.approx(observed.confusion.loc[row["Class"].text, row["Class"].text])
    heat = page.tables["table 5"]
    for true, row in zip(observed.confusion.index, heat[1:], strict=True):
        assert [cell.text for cell in row[1:]] == [format_percent(share) for share in observed.confusion.loc[true]]


def test_methods_equal_the_comparison(page: Any, simulated: Any, truth: pd.Series) -> None:
    from wisecrowd.evaluate.model_selection import compare_methods

    observed = compare_methods(simulated.crowd, truth=truth)
    rows = page.rows("method-table")
    assert [row["Method"].text.split()[0] for row in rows] == observed.table.index.tolist()
    for row, (name, expected) in zip(rows, observed.table.iterrows(), strict=True):
        assert ("use this" in row["Method"].text) == (name == observed.best)
        assert float(row["Difference to the best"].value) == pytest.approx(expected["behind"])
        assert row["Accuracy"].text == f"{expected['accuracy']:.3f}"
    assert observed.summary in page.section_text("methods")
    assert f"wisecrowd aggregate … -m {observed.best}" in page.section_text("next")


def test_next_steps_name_workers_and_tasks(page: Any, simulated: Any) -> None:
    observed = wc.diagnose_crowd(simulated.crowd)
    text = page.section_text("next")
    assert f"{(observed.workers['flags'] != '').sum()} workers, or stop inviting them" in text
    undecided = observed.tasks[observed.tasks["kind"] == "undecided"]
    if len(undecided):
        assert f"Get another vote on {len(undecided)} task" in text
        assert undecided["confidence"].idxmin() in text


def test_provenance(page: Any, simulated: Any) -> None:
    text = page.section_text("provenance")
    assert "wisecrowd report x.csv" in text
    assert simulated.crowd.digest in text
    assert f"numpy {np.__version__}" in text
    assert "Dawid and Skene 1979" in text
    assert "@article{dawid1979maximum" in text


def test_features_add_the_fit_of_tasks(page_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tasks, "MAX_TASKS", 30)
    simulated = wc.simulate_crowd(n_tasks=120, workers=["expert"] * 6, n_classes=2, votes_per_task=3, random_state=1)
    X = pd.DataFrame({"x": np.where(simulated.truth == "c0", -1.0, 1.0)}, index=simulated.truth.index)
    X.iloc[7] *= -1  # it looks like what it is not
    page = page_of(report.build(simulated.crowd, X=X, compare=False).html)
    fit = wc.diagnose_crowd(simulated.crowd, X).tasks["waum"]
    rows = {row["Task"].text: row["Fit"] for row in page.rows("task-table")}
    assert {task: cell.text for task, cell in rows.items()} == {task: f"{fit[task]:.2f}" for task in rows}
    assert simulated.truth.index[7] in rows
    assert set(fit.nsmallest(5).index) <= set(rows), "the least fitting are among those that are shown"
    assert "30 of 120 tasks: the first by each of four rankings" in page.captions["task-table"]
    assert "Lefort et al. 2024" in page.section_text("provenance")
    assert "@inproceedings{pleiss2020identifying" in page.section_text("provenance")


@pytest.mark.filterwarnings("ignore::wisecrowd.errors.DataWarning")
def test_features_of_a_single_class_are_ignored(page_of: Any) -> None:
    votes = wc.Crowd.from_triples([(task, who, "cat") for task in range(4) for who in ("ann", "bob")])
    page = page_of(report.build(votes, X=np.arange(4.0)[:, None], compare=False).html)
    assert "Fit" not in page.rows("task-table")[0]


# ---------------------------------------------------------------------- hostile data


@pytest.fixture(scope="module")
def hostile() -> report.Report:
    """Page of a crowd whose names, texts and title are hostile."""
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


def test_hostile_names_are_escaped(hostile: report.Report, page: Any, page_of: Any) -> None:
    harmless, page = page, page_of(hostile.html)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in harmless.tags}
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"style", "src", "srcdoc", "srcset", "action", "formaction"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    names = page.workers
    for text in HOSTILE[:6]:
        assert text in names
    assert "line\\nbreak\\ttab\\x00nul\\x1b[31m" in names
    assert any(name.startswith("\\u202eright-to-left") for name in names)
    assert "שלום עולם" in names
    assert "a\\u2028b\\u2029c" in names
    assert any(name.startswith("xxx") and name.endswith("xxx (10,000 characters)") for name in names)


def test_control_characters_and_long_texts_are_removed(hostile: report.Report) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029\ud800-\udfff]", hostile.html)
    assert "x" * 200 not in hostile.html
    assert "{{ 7 * 7 }}" in html.unescape(hostile.html)
    assert "49{%" not in hostile.html


def test_script_data_cannot_end_the_element(hostile: report.Report, page_of: Any) -> None:
    raw = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile.html, re.DOTALL)
    assert raw is not None
    assert not set("<>&") & set(raw.group(1))
    assert raw.group(1).isascii()
    assert "<script>alert(1)</script>" in [worker["name"] for worker in page_of(hostile.html).data["workers"]]


def test_policy_allows_only_the_own_script_and_style(hostile: report.Report) -> None:
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


def test_saved_page_is_recognised(tmp_path: Path, simulated: Any) -> None:
    built = report.build(simulated.crowd, compare=False)
    path = built.save(tmp_path / "new" / "page.html")
    assert path.read_text(encoding="utf-8") == built.html
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    assert report.is_report(path)
    path.write_text("<!doctype html>", encoding="utf-8")
    assert not report.is_report(path)


def test_text_formatting() -> None:
    assert format_percent(0.999) == "99.9%"
    assert format_percent(0.004) == "0.4%"
    assert (format_percent(0.99997), format_percent(3e-5), format_percent(0.25)) == (">99.9%", "<0.1%", "25%")
    assert (format_percent(1.0), format_percent(0.0), format_percent(float("nan"))) == ("100%", "0%", "–")
    assert (format_number(-0.001), format_number(-0.01), format_number(-1234.5, 1)) == ("0.00", "-0.01", "-1,234.5")
    assert shorten("a" * 100, 20) == f"{'a' * 15}…aaaaa (100 characters)"
    assert shorten("a" * 30, 20) == "a" * 30, "a cut would save nothing"
    assert escape_control_characters("a\u200db\x00") == "a\u200db\\x00"
    assert escape_control_characters("a\nb", lines=True) == "a\nb"
    assert (
        describe_selection(5, 12_345, "workers", "those with most votes")
        == "5 of 12,345 workers: those with most votes."
    )


# ---------------------------------------------------------------------- a real crowd


@pytest.mark.data
def test_report_on_labelme_equals_a_recount(dataset: Any, page_of: Any) -> None:
    data = dataset("labelme")
    page = page_of(report.build(data.crowd, truth=data.truth, compare=False).html)
    votes, observed = data.crowd.to_frame(), page.tiles
    assert (observed["votes"], observed["tasks"]) == (f"{len(votes):,}", f"{votes['task'].nunique():,}")
    labels = wc.DawidSkene().fit(data.crowd).labels_
    on_gold = data.truth[data.truth.index.isin(labels.index)]
    assert f"{(labels[on_gold.index] == on_gold).sum()} labels are right" in page.section_text("summary")
    counts = votes["worker"].value_counts()
    assert {row["Worker"].text: int(row["Votes"].text) for row in page.rows("worker-table")} == counts.to_dict()
    classes = votes["label"].astype(str).value_counts()
    assert {row["Class"].text: int(row["Votes"].text) for row in page.rows("class-table")} == classes.to_dict()
    tasks = votes.groupby("task").size()
    assert page.captions["task-table"].startswith(f"500 of {len(tasks):,} tasks")
    assert all(int(row["Votes"].text.split()[0]) == tasks[row["Task"].text] for row in page.rows("task-table"))
