"""Label Studio: the JSON export, and JSON_MIN, which says less.

A task has annotations, each with one result per question (``from_name``) or region. Answers that were skipped
(``was_cancelled``) and drafts are left out, those that are marked as ``ground_truth`` are the truth, and predictions are
votes of machines that go by their ``model_version``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tools.answers import tool_format
from wisecrowd.io.tools.exports import entries, first_object, objects, part
from wisecrowd.io.tools.gathering import OWN_TASK, Gathering, family, identity, spelled

#: Types of results that answer a question about the whole task -> the key of the answer in their value.
ANSWERS = {"choices": "choices", "rating": "rating", "number": "number", "pairwise": "selected"}
#: Why an answer is no vote: nobody can say whose it is.
DELETED = "of deleted accounts"
#: What JSON_MIN tells of an annotation beside the task's data and the answers.
_ABOUT = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "id", OWN_TASK)


def gather(path: Path) -> Gathering:
    """All that an export tells.

    >>> result = '{"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}'
    >>> task = f'{{"id": 7, "data": {{}}, "annotations": [{{"completed_by": 1, "result": [{result}]}}]}}'
    >>> _ = Path("export.json").write_text(f"[{task}]")
    >>> mood = gather(Path("export.json")).question("mood")
    >>> mood.task, mood.worker, mood.said
    (['7'], ['1'], [('good',)])
    """
    return gather_tasks(objects(path, "a task of Label Studio"))


def gather_tasks(tasks: Iterable[dict[str, Any]]) -> Gathering:
    """All that tasks tell, as an export or a server gives them.

    >>> gather_tasks([{"id": 7, "data": {"text": "Hi"}, "annotations": []}]).tasks
    {'7': {'id': 7, 'data': {'text': 'Hi'}}}
    """
    gathered = Gathering()
    for number, task in enumerate(tasks, start=1):
        if "annotations" in task or "predictions" in task or "completions" in task:
            _task(task, number, gathered)
        else:
            raise InputError(
                f"entry {number:,} has neither annotations nor predictions, as a task of Label Studio's JSON export has; "
                'if it is its JSON_MIN, say format="label-studio-min" (--format label-studio-min)'
            )
    return gathered


def _task(task: dict[str, Any], number: int, gathered: Gathering) -> None:
    where = f"entry {number:,}"
    name = name_of(task, number)
    gathered.tasks[name] = {key: task[key] for key in ("id", "data", "meta") if key in task}
    # A server shows the drafts of others to nobody, but says that there are some.
    if drafts := len(part(task, "drafts", list, where)) or int(task.get("draft_exists") is True):
        gathered.left_out["drafts"] += drafts
    for annotation in entries(task, "annotations" if "annotations" in task else "completions", where):
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            gathered.left_out["cancelled"] += 1
            continue
        # The server forgets who it was when an account is deleted.
        nobody = annotation.get("completed_by", 0) is None
        worker = "" if nobody else worker_of(annotation.get("completed_by"), where)
        results = entries(annotation, "result", where)
        answers = answers_of(results, gathered)
        if not results:  # regions and the like are counted by their kind
            gathered.left_out["empty"] += 1
        for question, said in answers.items():
            asked = gathered.question(question)
            if annotation.get("ground_truth") is True:
                asked.gold(name, said)
                asked.left_out["gold"] += 1
                continue
            if nobody:
                asked.left_out[DELETED] += 1
                continue
            asked.answer(
                name,
                worker,
                said,
                time=annotation.get("created_at") or annotation.get("updated_at"),
                seconds=annotation.get("lead_time"),
            )
    for prediction in _predictions(task, where, gathered):
        model = str(prediction.get("model_version") or "predictions")
        gathered.groups.setdefault(model, family(model))
        for question, said in answers_of(entries(prediction, "result", where), gathered).items():
            gathered.question(question).suggested(name, model, said, prediction.get("score"))


def name_of(task: dict[str, Any], number: int = 0) -> str:
    """What a task goes by: its id, or that of the task which it was made from to be labelled again.

    >>> name_of({"id": 7, "data": {}}), name_of({"id": 8, "data": {"wisecrowd_task": "7"}})
    ('7', '7')
    """
    where = f"entry {number:,}" if number else ""
    return identity(part(task, "data", dict, where).get(OWN_TASK, task.get("id", number)), "task", where)


def _predictions(task: dict[str, Any], where: str, gathered: Gathering) -> list[dict[str, Any]]:
    """What models said of a task. A server exports only the numbers of predictions, except those that an annotator was shown."""
    told = part(task, "predictions", list, where)
    if not any(type(one) is int for one in told):
        return entries(task, "predictions", where)
    annotations = [one for one in part(task, "annotations", list, where) if isinstance(one, dict)]
    was_shown = [one["prediction"] for one in annotations if isinstance(one.get("prediction"), dict)]
    shown = {one.get("id"): one for one in was_shown}
    numbers = [one for one in told if type(one) is int and one not in shown]
    if numbers:
        gathered.left_out["predictions told by number"] += len(numbers)
    known = [shown[one] if type(one) is int else one for one in told if type(one) is not int or one in shown]
    return entries({"predictions": known}, "predictions", where)


def worker_of(value: object, where: str) -> str:
    """Who annotated: a number, or in some exports all that is known of the person.

    >>> worker_of({"id": 3, "email": "ann@example.com"}, "entry 1")
    'ann@example.com'
    """
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    return identity(value, "annotator", where)


def answers_of(results: list[dict[str, Any]], gathered: Gathering) -> dict[str, list[Any]]:
    """What one annotation says to each question; regions say nothing of the task as a whole.

    >>> answers_of([{"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}], Gathering())
    {'mood': ['good']}
    """
    found: dict[str, list[Any]] = {}
    other: Counter[str] = Counter()
    for result in results:
        kind, value = str(result.get("type", "")), result.get("value")
        if kind not in ANSWERS or not isinstance(value, dict):
            other[kind or "results without a type"] += 1
            continue
        if set(value) - {ANSWERS[kind]}:
            other[f"{kind} of regions"] += 1
            continue
        said = value.get(ANSWERS[kind])
        chosen = said if isinstance(said, list) else [] if said is None else [said]
        if not all(map(_plain, chosen)):
            other[f"nested {kind}"] += 1
            continue
        name = identity(result.get("from_name"), "question", "from_name of a result")
        asked = gathered.question(name)
        asked.number = asked.number or kind == "number"
        asked.control.update(from_name=name, to_name=str(result.get("to_name", "")), type=kind)
        found.setdefault(name, []).extend(chosen)
    gathered.left_out.update(other)
    return found


def gather_min(path: Path) -> Gathering:
    """All that JSON_MIN tells: an entry per annotation, in which answers stand beside the data of the task.

    >>> entry = '{{"id": 7, "text": "Hi", "mood": "{}", "annotator": {}, "annotation_id": 1, "lead_time": 2.5}}'
    >>> _ = Path("export.json").write_text(f"[{entry.format('good', 1)}, {entry.format('bad', 2)}]")
    >>> gather_min(Path("export.json")).question("mood").said
    [('good',), ('bad',)]
    """
    gathered = Gathering()
    records = objects(path, "an annotation of Label Studio's JSON_MIN")
    names = _questions(records)
    left = {*_ABOUT, *names, *(key for record in records for key, value in record.items() if _regions(value))}
    for number, record in enumerate(records, start=1):
        where = f"entry {number:,}"
        task = identity(record.get(OWN_TASK, record.get("id")), "task", where)
        gathered.tasks[task] = {"id": record.get("id"), "data": {key: record[key] for key in record if key not in left}}
        if record.get("annotator", 0) is None:
            if record.get("annotation_id") is not None:  # otherwise it is a task that nobody labelled
                gathered.left_out[DELETED] += 1
            continue
        worker = worker_of(record.get("annotator"), where)
        regions = Counter(kind for value in record.values() for kind in _regions(value))
        gathered.left_out.update(regions)
        answered = [name for name in names if name in record]
        if not answered and not regions:
            gathered.left_out["empty"] += 1
        for name in answered:
            said = list(_minimal(record[name]))
            asked = gathered.question(name)
            asked.number = asked.number or _key(record[name]) == "number"
            asked.answer(task, worker, said, time=record.get("created_at"), seconds=record.get("lead_time"))
    return gathered


def _questions(records: list[dict[str, Any]]) -> list[str]:
    """Which keys are answers: those that differ between annotations of a task, or hold choices; data are the same for all."""
    first: dict[str, dict[str, Any]] = {}
    differ: dict[str, None] = {}
    for number, record in enumerate(records, start=1):
        task = identity(record.get("id"), "task", f"entry {number:,}")
        known = first.setdefault(task, record)
        for key, value in record.items():
            if key in _ABOUT:
                continue
            if _key(value) or (known is not record and known.get(key) != value and _plain(value)):
                differ[key] = None
    if differ:
        return list(differ)
    if len(first) < len(records):
        raise InputError(
            "nobody can tell the answers from the data in this JSON_MIN, for all annotations of a task say the same; "
            "export JSON instead, which says more"
        )
    raise InputError(
        "nobody can tell the answers from the data in this JSON_MIN, for no task has two annotations; export JSON instead"
    )


def _regions(value: object) -> list[str]:
    """The kinds of the regions in what JSON_MIN holds under a key: spans or boxes, which have a place beside their labels."""
    if not isinstance(value, list) or not all(isinstance(one, dict) and len(one) > 1 for one in value):
        return []
    kinds = [next((key for key in one if key.endswith("labels") and isinstance(one[key], list)), "") for one in value]
    return kinds if all(kinds) else []


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _key(value: object) -> str:
    """Under which key an answer tells what was said, if it has the form that only answers have."""
    parts = value if isinstance(value, list) and value else [value]
    keys = {tuple(one) if isinstance(one, dict) else () for one in parts}
    (first, *others) = keys
    return first[0] if not others and len(first) == 1 and first[0] in ANSWERS.values() else ""


def _minimal(value: Any) -> Iterator[str]:
    """The options in an answer as JSON_MIN writes it: a text, {"choices": […]} when there are several, or [{"rating": 4}]."""
    if key := _key(value):
        for one in value if isinstance(value, list) else [value]:
            yield from _minimal(one[key])
        return
    for one in value if isinstance(value, list) else [value]:
        if _plain(one):
            yield spelled(one)


def _sniff(path: Path) -> bool:
    keys = first_object(path).keys()
    return "data" in keys and bool(keys & {"annotations", "predictions", "completions"})


def _sniff_min(path: Path) -> bool:
    return first_object(path).keys() >= {"id", "annotator", "annotation_id", "lead_time"}


LABEL_STUDIO = tool_format("label-studio", "an export of Label Studio in JSON", gather, _sniff)
LABEL_STUDIO_MIN = tool_format("label-studio-min", "an export of Label Studio in JSON_MIN", gather_min, _sniff_min)
