"""Pages of very large, very small and unusual crowds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import report
from wisecrowd.errors import InputError, MissingExtra, UsageError

#: A figure that is none, in text or in a picture.
NAN = re.compile(r"\bnan\b")


# ---------------------------------------------------------------------- large crowds


@pytest.mark.slow
def test_large_crowd_is_shown_in_part(page_of: Any) -> None:
    """Check size and captions of the page of a crowd that exceeds every limit of a page."""
    rng = np.random.default_rng(0)
    n_tasks, n_workers, n_classes = 3_000, 600, 25
    true = rng.integers(n_classes, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), 5)
    label_codes = np.where(rng.random(len(task)) < 0.7, true[task], rng.integers(n_classes, size=len(task)))
    worker = np.concatenate([rng.choice(n_workers, 5, replace=False) for _ in range(n_tasks)])
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label_codes})
    simulated = report.build(frame, compare=False, texts=dict.fromkeys(range(n_tasks), "Lorem ipsum " * 200))
    assert len(simulated.html.encode()) < 2e6
    page = page_of(simulated.html)
    assert page.captions["worker-table"].startswith("500 of 600 workers: the ")
    assert page.captions["task-table"].startswith("500 of 3,000 tasks: ")
    assert "20 of 25 classes" in page.captions["class-table"]
    assert len(page.rows("worker-table")) == len(page.data["workers"]) == 500
    assert len(page.rows("task-table")) == 500
    counts = frame["worker"].value_counts()
    unflagged = [int(row["Worker"].text) for row in page.rows("worker-table") if not row["Flags and reasons"].text]
    assert counts[unflagged].min() >= counts[~counts.index.isin(map(int, page.workers))].max()
    assert "(2,400 characters)" in page.rows("task-table")[0]["Text"].text


# ---------------------------------------------------------------------- small and odd crowds


def test_tasks_and_workers_without_votes_have_a_row(simulated: Any, page_of: Any) -> None:
    crowd = wc.Crowd.from_frame(
        simulated.crowd.to_frame().iloc[:150],
        tasks=[*simulated.crowd.tasks, "nobody looked"],
        workers=[*simulated.crowd.workers, "idle"],
    )
    page = page_of(report.build(crowd, compare=False).html)
    idle = next(row for row in page.rows("worker-table") if row["Worker"].text == "idle")
    assert (idle["Votes"].text, idle["Agreement"].text) == ("0", "–")
    assert not NAN.search(re.sub(r"<script>.*</script>", "", page.html, flags=re.DOTALL))
    assert (
        f"Get another vote on {(wc.diagnose_crowd(crowd).tasks['kind'].isin(['undecided', 'unlabelled'])).sum()} tasks"
        in (page.section_text("next"))
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
def test_tiny_crowds_have_a_page(rows: list[tuple[Any, ...]], page_of: Any) -> None:
    page = page_of(report.build(wc.Crowd.from_triples(rows)).html)
    assert page.tiles["votes"] == str(len(rows))
    assert not NAN.search(re.sub(r"<script>.*</script>", "", page.html, flags=re.DOTALL))


def test_warnings_are_on_the_page(page_of: Any) -> None:
    built = report.build(wc.Crowd.from_triples([(n, n, n % 2) for n in range(12)]))
    assert built.warnings[0].startswith("No task has two votes")
    assert "Warning: No task has two votes" in page_of(built.html).section_text("summary")


def test_invalid_input_is_refused(simulated: Any) -> None:
    with pytest.raises(InputError, match="no votes"):
        report.build(simulated.crowd.take([]))
    numbers = wc.Crowd.from_frame({"task": [1], "worker": [1], "label": [0.5]}, numeric=True)
    with pytest.raises(UsageError, match="needs class labels, but the labels of this crowd are numbers"):
        report.build(numbers)
    with pytest.raises(InputError, match="none of the 1 tasks with truth"):
        report.build(simulated.crowd, truth={"elsewhere": "c0"}, compare=False)
    with pytest.raises(InputError, match="none of the texts"):
        report.build(simulated.crowd, texts={"elsewhere": "text"}, compare=False)
    with pytest.raises(UsageError, match="by task"):
        report.build(simulated.crowd, texts=["text"], compare=False)


def test_missing_jinja_is_reported(simulated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from wisecrowd.report import page as _page

    _page.load_templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[report\]"):
        report.build(simulated.crowd)
    _page.load_templates.cache_clear()
