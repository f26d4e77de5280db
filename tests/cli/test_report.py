"""``wisecrowd report``: one page for people."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wisecrowd import report

Run = Callable[..., Any]
QUICK = "--no-compare"


@pytest.mark.slow
def test_it_writes_one_page_and_says_where(run: Run, votes: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    said = run("report", votes, "-o", "page.html")
    assert said.exit_code == 0
    assert "page.html" in said.stdout
    assert "48 votes: 12 tasks x 4 workers" in said.stdout
    assert set(tmp_path.iterdir()) - before == {tmp_path / "page.html"}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Comparison of methods" in page
    assert "use this" in page
    assert "zed" in page


def test_truth_texts_and_title_are_on_the_page(run: Run, votes: Path, gold: Path, tmp_path: Path) -> None:
    texts = tmp_path / "tasks.csv"
    texts.write_text("task,wording\nt01,Is it a <cat>?\n", encoding="utf-8")
    said = run(
        "report", votes, QUICK, "--score", gold, "--texts", texts, "--text-column", "wording", "--title", "Cats & dogs"
    )
    assert said.exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Is it a &lt;cat&gt;?" in page
    assert "<title>Cats &amp; dogs</title>" in page
    assert "Accuracy on gold" in page
    assert "11 of them have no text" in page


def test_images_come_from_a_folder_or_a_table(run: Run, votes: Path, tmp_path: Path) -> None:
    pixel = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "t01.gif").write_bytes(pixel)
    (tmp_path / "tasks.csv").write_text("task,photo\nt01,photos/t01.gif\nt02,photos/absent.gif\n", encoding="utf-8")
    assert run("report", votes, QUICK, "--images", "photos").exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 1
    assert "11 tasks have no image." in page
    assert run("report", votes, QUICK, "--images", "tasks.csv", "--image-column", "photo").exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 1
    assert "10 tasks have no image. 1 image cannot be found or opened" in page
    assert "--image-column photo" in page, "the command is on the page"
    (tmp_path / "tasks.csv").write_text("task,image\nt01,../elsewhere.gif\n", encoding="utf-8")
    said = run("report", votes, QUICK, "--images", "tasks.csv")
    assert said.exit_code == 1
    assert "paths of images must stay inside the folder of the table" in said.stderr


def test_the_command_on_the_page_makes_the_page_again(run: Run, votes: Path, tmp_path: Path) -> None:
    import html
    import re
    import shlex

    assert (
        run("report", votes, QUICK, "-o", "a page.html", "--title", "It's", "--duplicates", "first", "-q").stdout == ""
    )
    page = (tmp_path / "a page.html").read_text(encoding="utf-8")
    found = re.search(r"<pre><code>(wisecrowd report .*?)</code></pre>", page)
    assert found is not None
    words = shlex.split(html.unescape(found.group(1)))
    assert words[:3] == ["wisecrowd", "report", str(votes)]
    assert {"--no-compare", "It's", "--duplicates", "first"} <= set(words)
    (tmp_path / "a page.html").unlink()
    assert run(*words[1:]).exit_code == 0
    again = (tmp_path / "a page.html").read_text(encoding="utf-8")
    assert again.count("<tr") == page.count("<tr")


@pytest.mark.slow
def test_the_question_of_an_export_is_named(run: Run, tmp_path: Path) -> None:
    folder, page = Path(__file__).parents[1] / "recorded", tmp_path / "page.html"
    export = folder / "label_studio" / "export_json.json"
    assert run("report", export, QUICK, "--question", "mood", "-o", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "<title>export_json: mood</title>" in text
    assert "<h1><bdi>export_json: mood</bdi></h1>" in text
    assert "Answers to the question <strong><bdi>mood</bdi></strong>." in text
    task = json.loads(export.read_text(encoding="utf-8"))[0]
    assert str(task["data"]["text"])[:20] in text, "the texts of tasks come from the export"
    said = run("report", export, QUICK, "--question", "topics", "-o", page)
    assert "replaced the report 'export_json: mood' on question 'mood'" in " ".join(said.stderr.split())
    assert "<title>export_json: topics</title>" in page.read_text(encoding="utf-8")
    objects = folder / "label_studio_objects" / "export_json.json"
    assert run("report", objects, QUICK, "--question", "names", "-o", page).exit_code == 0
    assert "Answers to the question <strong><bdi>names</bdi></strong>." in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_small_export_with_a_model_is_described_as_such(run: Run, tmp_path: Path) -> None:
    folder, path = Path(__file__).parents[1] / "recorded", tmp_path / "page.html"
    moods = folder / "label_studio" / "export_json.json"
    assert run("report", moods, QUICK, "--question", "mood", "-o", path).exit_code == 0
    page = " ".join(re.sub(r"<[^>]+>|[\u2068\u2069]", "", path.read_text(encoding="utf-8")).split())
    assert "Let an expert label all 6 tasks, and build this report with them." in page
    assert "±" not in page.partition("Let an expert")[2].partition("Workers")[0]
    assert "4 workers gave fewer than 10 votes, so their accuracies and flags are uncertain." in page
    assert "Check the instructions of 1 model, or leave out its votes." in page
    assert "Talk to" not in page
    assert "The votes were cast within one minute, at 2026-11-16 18:12 (UTC)." in page
    listed = re.search(r"bad ?” where “ ?good ?” is true: 19% of the votes on it, about (\d+) votes", page)
    assert listed is not None
    assert f"About {listed[1]} votes say “bad” where “good” is true, and not only of flagged workers." in page
    objects = folder / "label_studio_objects" / "export_json.json"
    assert run("report", objects, QUICK, "--question", "objects", "-o", path).exit_code == 0
    page = path.read_text(encoding="utf-8")
    assert ("0 of 4 candidates" in page) == ("Least certain tasks" in page)
    assert "confidence of 1.00 or more" not in page
    said = run("report", objects, QUICK, "--question", "caption", "-o", path)
    assert "too few to estimate how reliable" in " ".join(said.stderr.split())
    assert "too few to estimate how reliable" in path.read_text(encoding="utf-8")


def test_nothing_of_somebody_else_is_overwritten(run: Run, votes: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><p>precious</p>", encoding="utf-8")
    said = run("report", votes, QUICK, "-o", page)
    assert said.exit_code == 2
    assert "--force" in said.stderr
    assert "precious" in page.read_text(encoding="utf-8")
    said = run("report", votes, QUICK, "-o", page, "--force")
    assert said.exit_code == 0
    assert f"Note: replaced {page}, which was not a wisecrowd report" in said.stderr
    assert report.is_report(page)
    said = run("report", votes, QUICK, "-o", page)
    assert said.exit_code == 0, "a report may replace an earlier one"
    assert "replaced" not in said.stderr
    others = tmp_path / "others.csv"
    others.write_text("task,worker,label\n1,ann,cat\n1,bob,dog\n2,ann,cat\n2,bob,cat\n", encoding="utf-8")
    said = run("report", others, QUICK, "-o", page, "-q")
    assert said.exit_code == 0
    assert f"Note: replaced the report {votes.stem!r} on other votes, which was in {page}" in said.stderr
    page.write_text('<meta name="generator" content="wisecrowd 0.2.0 review">', encoding="utf-8")
    assert run("report", votes, QUICK, "-o", page).exit_code == 2, "other pages of wisecrowd are not reports"
    said = run("report", votes, QUICK, "-o", votes, "--force")
    assert said.exit_code == 2
    assert "is an input file and would be overwritten" in said.stderr
    said = run("report", votes, QUICK, "-o", tmp_path)
    assert said.exit_code == 2
    assert "is a folder" in said.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--no-workers",), "needs worker ids, but this crowd has none"),
        (("--score", "absent.csv"), "absent.csv"),
        (("--texts", "absent.csv"), "absent.csv"),
        (("--images", "absent"), "absent"),
        (("--features", "absent.npz"), "absent.npz"),
    ],
)
def test_mistakes_end_in_a_message_and_leave_nothing(
    run: Run, votes: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    said = run("report", votes, QUICK, *words)
    assert said.exit_code in (1, 2)
    assert message in said.stderr
    assert not (tmp_path / "report.html").exists()


def test_another_method_can_judge(run: Run, votes: Path, tmp_path: Path) -> None:
    assert run("report", votes, QUICK, "-m", "one-coin").exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "--method one-coin" in page  # the command that makes it again
    assert "OneCoin" in page or "one-coin" in page


def test_comparisons(run: Any, tmp_path: Path) -> None:
    (tmp_path / "arena.csv").write_text("judge,left,right,winner\nann,a,b,a\nbob,b,c,b\ncy,c,a,tie\n", encoding="utf-8")
    result = run("report", "arena.csv", "-o", "arena.html", "--no-compare")
    assert result.exit_code == 0, result.output
    assert "comparisons of two items" in result.stdout
    assert "What to compare next" in (tmp_path / "arena.html").read_text(encoding="utf-8")
    assert run("report", "arena.csv", "-o", "other.html", "--score", "arena.csv").exit_code != 0


def test_an_export_gives_names_of_workers_and_links_to_tasks(run: Any, tmp_path: Path) -> None:
    people = [{"id": 1, "email": "ann@x.org", "first_name": "Ann", "last_name": "Lee"}, {"id": 2, "email": "bob@x.org"}]
    tasks = [
        {
            "id": number,
            "data": {"text": "Good?", "url": f"https://example.com/{number}"},
            "annotations": [
                {
                    "id": 2 * number + person["id"],
                    "completed_by": person,
                    "result": [
                        {
                            "from_name": "mood",
                            "to_name": "text",
                            "type": "choices",
                            "value": {"choices": ["yes" if number % 2 else "no"]},
                        }
                    ],
                }
                for person in people
            ],
        }
        for number in range(12)
    ]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks), encoding="utf-8")
    result = run("report", export, "-o", "page.html", "--no-compare")
    assert result.exit_code == 0, result.output
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<bdi class="name">Ann Lee (1)</bdi>' in page
    assert '<bdi class="name">bob@x.org (2)</bdi>' in page
    assert '<a href="https://example.com/7"' in page


def test_marks_and_texts_have_pages_with_pictures(run: Any, tmp_path: Path) -> None:
    rows = [(task, worker, 0, 4, "LOC") for task in "ab" for worker in "xyz"]
    spans = pd.DataFrame(rows, columns=["task", "worker", "start", "end", "label"])
    spans.to_csv(tmp_path / "spans.csv", index=False)
    pd.DataFrame({"task": ["a", "b"], "text": ["Rome fell", "Oslo rose"]}).to_csv(tmp_path / "texts.csv", index=False)
    result = run("report", "spans.csv", "--texts", "texts.csv", "--no-compare", "-o", "spans.html")
    assert result.exit_code == 0, result.output
    assert ">Rome<" in (tmp_path / "spans.html").read_text()
    assert "wisecrowd report spans.csv" in (tmp_path / "spans.html").read_text()
    refused = run("report", "spans.csv", "--images", "texts.csv", "-o", "x.html")
    assert "leave out --images" in refused.output
    pd.DataFrame({"task": ["a", "a"], "worker": ["x", "y"], "text": ["one two", "one too"]}).to_csv(
        "said.csv", index=False
    )
    assert run("report", "said.csv", "--no-compare", "-o", "said.html").exit_code == 0
    assert "Disputed texts" in (tmp_path / "said.html").read_text()


def test_a_folder_of_spans_has_the_tokens_of_its_documents(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    spans = pd.DataFrame(
        {"task": ["a"] * 3, "worker": list("xyz"), "start": [1] * 3, "end": [3] * 3, "label": ["LOC"] * 3}
    )
    spans.to_parquet(folder / "spans.parquet")
    pd.DataFrame({"task": ["a"], "tokens": [["in", "New", "York"]]}).to_parquet(folder / "documents.parquet")
    result = run("report", "folder", "--no-compare", "-o", "page.html")
    assert result.exit_code == 0, result.output
    assert ">New York<" in (tmp_path / "page.html").read_text()


def test_a_page_on_gold_of_every_task_estimates_nothing(run: Run, votes: Path, gold: Path) -> None:
    assert run("report", votes, QUICK, "--gold", gold, "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "not estimated: every task is gold" in page
    assert "Every task is gold, so the labels are the truth that was given" in page
    assert "are expected to be right" not in page
