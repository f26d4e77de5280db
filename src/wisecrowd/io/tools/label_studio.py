"""Label Studio: the JSON export, and JSON_MIN, which holds less.

A task has annotations, each with one result per question (``from_name``) or region. Skipped annotations (``was_cancelled``)
and drafts are excluded, those marked as ``ground_truth`` are the truth, and predictions are votes of machines, named after
their ``model_version``. An annotation without regions is a vote on questions of regions: its worker marked nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.tables.text_labels import are_texts
from wisecrowd.io.tools.export_files import get_objects, get_part, peek_object, read_objects
from wisecrowd.io.tools.exported_answers import (
    OWN_MODEL,
    OWN_TASK,
    ExportedAnswers,
    format_label,
    guess_model_family,
    parse_id,
)
from wisecrowd.io.tools.exported_structures import AnswerSheet, add_sheets
from wisecrowd.io.tools.label_studio_regions import convert_to_pixels, find_kind, parse_regions
from wisecrowd.io.tools.question_votes import make_tool_reader
from wisecrowd.io.tools.task_identity import are_different_tasks, describe_difference, select_content

#: Types of results that answer a question about the whole task, with the key of the answer in their value.
ANSWER_KEYS = {"choices": "choices", "rating": "rating", "number": "number", "pairwise": "selected"}
#: Type of results that rank items.
RANKER = "ranker"
#: Reason for excluding an answer without a worker.
DELETED = "of deleted accounts"
#: Key of a pulled task that holds the name of its server and the creation time of its project.
ORIGIN_KEY = "wisecrowd_origin"
#: Names of servers. They contain neither "/" nor ":", which separate the parts of the name of a question.
SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
#: Keys of JSON_MIN that are neither data of the task nor answers.
_ANNOTATION_KEYS = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "id", OWN_TASK)

#: Common answers from which a person and a model are compared: if there are other people, if there are none, and if nobody else
#: answered the same tasks.
MIN_EQUAL_ANSWERS, MIN_EQUAL_ALONE, MIN_EQUAL_TASKS = 5, 20, 3

#: E-mail address.
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")

_Record = dict[str, Any]


def read_export(path: Path) -> ExportedAnswers:
    """Read all answers in a JSON export.

    Parameters
    ----------
    path : Path
        JSON file.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> result = '{"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}'
    >>> task = f'{{"id": 7, "data": {{}}, "annotations": [{{"completed_by": 1, "result": [{result}]}}]}}'
    >>> _ = Path("export.json").write_text(f"[{task}]")
    >>> mood = read_export(Path("export.json")).get_question("mood")
    >>> mood.task, mood.worker, mood.labels
    (['7'], ['1'], [('good',)])
    """
    return parse_tasks(read_objects(path, "a task of Label Studio"))


def parse_tasks(tasks: Iterable[_Record]) -> ExportedAnswers:
    """Parse tasks of an export or a server.

    Parameters
    ----------
    tasks : iterable of dict
        Tasks with annotations and predictions.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Raises
    ------
    InputError
        If an entry is no task, or tasks of several projects have the same id.

    Examples
    --------
    >>> parse_tasks([{"id": 7, "data": {"text": "Hi"}, "annotations": []}]).tasks
    {'7': {'id': 7, 'data': {'text': 'Hi'}}}
    """
    export = ExportedAnswers()
    sheets: list[AnswerSheet] = []
    first_contents: dict[str, tuple[_Record, str | None]] = {}
    strangers: dict[str, tuple[_Record, str | None]] = {}
    for number, task in enumerate(tasks, start=1):
        if "annotations" in task or "predictions" in task or "completions" in task:
            _add_task(task, number, export, sheets)
            task_id, content, project = get_task_id(task, number), select_content(task), _find_project(task)
            if project is not None:
                export.task_projects[task_id] = project
            first, first_project = first_contents.setdefault(task_id, (content, project))
            if are_different_tasks(first, content, projects=(first_project, project)):
                strangers.setdefault(task_id, (content, project))
        else:
            raise InputError(
                f"entry {number:,} has neither annotations nor predictions, so it is not a task of Label Studio's JSON "
                'export; if it is JSON_MIN, use format="label-studio-min" (--format label-studio-min)'
            )
    if strangers:
        task_id, (content, project) = next(iter(strangers.items()))
        first, first_project = first_contents[task_id]
        difference = describe_difference(
            task_id, (first, content), (first_project, project), n_further=len(strangers) - 1
        )
        raise InputError(f"{difference}. Their votes would mix; read the export of each project on its own")
    add_sheets(export, sheets)
    convert_to_pixels(export)
    _warn_mixed_workers(export)
    _warn_copied_models(export)
    return export


def _find_project(task: _Record) -> str | None:
    """Return the project of a task, with its server and its creation if `wisecrowd label-studio pull` wrote them."""
    project, origin = task.get("project"), task.get(ORIGIN_KEY)
    if not isinstance(project, int | str):
        return None
    place = [str(project)]
    if isinstance(origin, dict):
        place += [f"of {server}"] if (server := origin.get("server")) else []
        place += [f"(created {created})"] if (created := origin.get("project_created_at")) else []
    return " ".join(place)


def _warn_mixed_workers(export: ExportedAnswers) -> None:
    """Add a warning if some people have a number as id and others an e-mail address: they may be the same people."""
    columns = [
        *((entry.worker, entry.machine) for entry in export.questions.values()),
        *((entry.worker, entry.machine) for entry in export.structures.values()),
    ]
    people = {
        worker
        for workers, machine in columns
        for worker, is_machine in zip(workers, machine, strict=True)
        if not is_machine
    }
    numbers = sorted(worker for worker in people if worker.isdecimal())
    addresses = sorted(worker for worker in people if _ADDRESS.fullmatch(worker))
    if numbers and addresses:
        export.warnings.append(
            f"worker ids are numbers ({preview(numbers, 3)}) and e-mail addresses ({preview(addresses, 3)}); a person with both "
            "counts as two workers. Give each person one id, or export all annotations in one format"
        )


def _warn_copied_models(export: ExportedAnswers) -> None:
    """Add a warning for every person who gives the answers of a model: they may be an import of its predictions."""
    answers: dict[tuple[str, bool], dict[tuple[str, str], tuple[str, ...]]] = defaultdict(dict)
    for name, question in export.questions.items():
        for row, worker in enumerate(question.worker):
            answers[worker, question.machine[row]][name, question.task[row]] = question.labels[row]
    people = {worker: of_person for (worker, is_machine), of_person in answers.items() if not is_machine}
    for model, predicted in [(worker, of_model) for (worker, is_machine), of_model in answers.items() if is_machine]:
        with_same_tasks = [person for person in people if people[person].keys() == predicted.keys()]
        copies, n_compared = [], 0
        for person, of_person in people.items():
            common = of_person.keys() & predicted.keys()
            is_equal = all(of_person[key] == predicted[key] for key in common)
            if with_same_tasks == [person] and len(people) > 1 and is_equal and len(common) >= MIN_EQUAL_TASKS:
                copies = [person]
                break
            if len(common) >= MIN_EQUAL_ANSWERS and len({predicted[key] for key in common}) > 1:
                n_compared += 1
                enough = len(people) > 1 or len(common) >= MIN_EQUAL_ALONE
                copies += [person] if is_equal and enough else []
        else:
            if len(people) > 1 and 2 * len(copies) > n_compared:
                continue  # the tasks are easy
        export.warnings += [
            f"the worker {preview([person])} gives the same answers as the model {preview([model])}, all "
            f"{len(people[person].keys() & predicted.keys()):,} of them; if they are predictions that were imported as "
            "annotations, leave them out, or name the worker a machine in a table of members (worker,kind: --members)"
            for person in copies
        ]


def _add_task(task: _Record, number: int, export: ExportedAnswers, sheets: list[AnswerSheet]) -> None:
    location = f"entry {number:,}"
    task_id = get_task_id(task, number)
    export.tasks[task_id] = {key: task[key] for key in ("id", "data", "meta") if key in task}
    # A server does not show the drafts of other people, only that there are some.
    if drafts := len(get_part(task, "drafts", list, location)) or int(task.get("draft_exists") is True):
        export.excluded["drafts"] += drafts
    for annotation in get_objects(task, "annotations" if "annotations" in task else "completions", location):
        _add_annotation(annotation, task_id, location, export, sheets)
    for prediction in _get_predictions(task, location, export):
        model = str(prediction.get("model_version") or "predictions")
        export.groups.setdefault(model, guess_model_family(model))
        results = get_objects(prediction, "result", location)
        for name, labels in parse_results(results, export).items():
            export.get_question(name).add_suggestion(task_id, model, labels, prediction.get("score"))
        regions = parse_regions(results, task_id, location, export)
        sheets.append(AnswerSheet(task_id, model, regions, machine=True, score=prediction.get("score")))
        if not model.startswith(OWN_MODEL):
            _add_rankings(results, task_id, model, export)


def _add_annotation(
    annotation: _Record, task_id: str, location: str, export: ExportedAnswers, sheets: list[AnswerSheet]
) -> None:
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        export.excluded["cancelled"] += 1
        return
    is_gold = annotation.get("ground_truth") is True
    # The server removes the worker when an account is deleted.
    is_deleted = annotation.get("completed_by", 0) is None
    # Gold that wisecrowd wrote for import has no worker; the server enters the user who imports it.
    worker = "" if is_deleted or is_gold else parse_worker(annotation.get("completed_by"), location)
    if worker and (name := parse_worker_name(annotation)):
        export.worker_names[worker] = name
    results = get_objects(annotation, "result", location)
    answers = parse_results(results, export)
    if not results:  # regions are counted by their type
        export.excluded["empty"] += 1
    time = annotation.get("created_at") or annotation.get("updated_at")
    regions = parse_regions(results, task_id, location, export)
    if is_deleted and not is_gold:
        for name in regions:
            export.structures[name].excluded[DELETED] += 1
    else:
        sheet = AnswerSheet(task_id, worker, regions, time=time, is_gold=is_gold, is_empty=not results)
        sheets.append(sheet)
    if not is_deleted and not is_gold:
        _add_rankings(results, task_id, worker, export)
    for name, labels in answers.items():
        question = export.get_question(name)
        if is_gold:
            question.add_gold(task_id, labels)
            question.excluded["gold"] += 1
        elif is_deleted:
            question.excluded[DELETED] += 1
        else:
            question.add_answer(task_id, worker, labels, time=time, seconds=annotation.get("lead_time"))


def _add_rankings(results: list[_Record], task_id: str, worker: str, export: ExportedAnswers) -> None:
    for result in results:
        order = _parse_ranking(result.get("value")) if result.get("type") == RANKER else None
        if order is not None:
            name = parse_id(result.get("from_name"), "question", "from_name of a result")
            export.rankings.setdefault(name, []).append((task_id, worker, tuple((item,) for item in order)))


def _parse_ranking(value: object) -> list[str] | None:
    """Return the items of a ranker, the best first; None for several buckets, which have no order."""
    order = value.get(RANKER) if isinstance(value, dict) else None
    if isinstance(order, dict):
        lists = [items for items in order.values() if isinstance(items, list)]
        order = order.get("rank", lists[0] if len(lists) == 1 else None)
    if not isinstance(order, list) or len(order) < 2 or not all(isinstance(item, str | int) for item in order):
        return None
    items = [str(item) for item in order]
    return items if len(set(items)) == len(items) else None


def get_task_id(task: _Record, number: int = 0) -> str:
    """Return the id of a task, or that of the original if wisecrowd queued the task to be labelled again.

    Parameters
    ----------
    task : dict
        Task.
    number : int, default=0
        Position in the file, for messages and for tasks without an id.

    Returns
    -------
    str
        Task id.

    Examples
    --------
    >>> get_task_id({"id": 7, "data": {}}), get_task_id({"id": 8, "data": {"wisecrowd_task": "7"}})
    ('7', '7')
    """
    location = f"entry {number:,}" if number else ""
    return parse_id(get_part(task, "data", dict, location).get(OWN_TASK, task.get("id", number)), "task", location)


def _get_predictions(task: _Record, location: str, export: ExportedAnswers) -> list[_Record]:
    """Return the predictions of a task. A server exports ids only, except for predictions that an annotator saw."""
    predictions = get_part(task, "predictions", list, location)
    if not any(type(prediction) is int for prediction in predictions):
        return get_objects(task, "predictions", location)
    annotations = [item for item in get_part(task, "annotations", list, location) if isinstance(item, dict)]
    shown = [item["prediction"] for item in annotations if isinstance(item.get("prediction"), dict)]
    shown_by_id = {prediction["id"]: prediction for prediction in shown if type(prediction.get("id")) is int}
    n_unresolved = sum(type(item) is int and item not in shown_by_id for item in predictions)
    if n_unresolved:
        export.excluded["predictions told by number"] += n_unresolved
    resolved = [
        shown_by_id[item] if type(item) is int else item
        for item in predictions
        if type(item) is not int or item in shown_by_id
    ]
    return get_objects({"predictions": resolved}, "predictions", location)


def parse_worker(value: object, location: str) -> str:
    """Return the worker id of an annotation: the number of the person, or the e-mail address if the export has no number.

    Parameters
    ----------
    value : object
        Value of ``completed_by``.
    location : str
        Position in the file, for messages.

    Returns
    -------
    str
        Worker id.

    Examples
    --------
    >>> parse_worker({"id": 3, "email": "ann@example.com"}, "entry 1")
    '3'
    """
    if isinstance(value, dict):
        user_id = value.get("id")
        value = (value.get("email") or value.get("username")) if user_id is None else user_id
    return parse_id(value, "annotator", location)


def parse_worker_name(annotation: _Record) -> str:
    """Return the name of the person who made an annotation, or an empty string if the export does not have it.

    Parameters
    ----------
    annotation : mapping
        Annotation of the export.

    Returns
    -------
    str
        First and last name, or the e-mail address.

    Examples
    --------
    >>> parse_worker_name({"completed_by": {"id": 3, "email": "ann@example.com", "first_name": "Ann", "last_name": "Lee"}})
    'Ann Lee'
    >>> parse_worker_name({"completed_by": 2, "created_username": " bob@example.com, 2"})
    'bob@example.com'
    """
    person = annotation.get("completed_by")
    if isinstance(person, dict):
        parts = [str(person.get(key) or "").strip() for key in ("first_name", "last_name")]
        return " ".join(filter(None, parts)) or str(person.get("email") or "")
    described = annotation.get("created_username")
    return described.rpartition(",")[0].strip() if isinstance(described, str) else ""


def parse_results(results: list[_Record], export: ExportedAnswers) -> dict[str, list[Any]]:
    """Parse the results of an annotation about the whole task.

    Spans, boxes, points and texts are left to `parse_regions`. Other regions are counted as excluded.

    Parameters
    ----------
    results : list of dict
        Results.
    export : ExportedAnswers
        Export to which questions and counts are added.

    Returns
    -------
    dict of str to list
        Labels by question.

    Examples
    --------
    >>> parse_results([{"from_name": "mood", "type": "choices", "value": {"choices": ["good"]}}], ExportedAnswers())
    {'mood': ['good']}
    """
    labels_by_question: dict[str, list[Any]] = {}
    excluded: Counter[str] = Counter()
    for result in results:
        kind, value = str(result.get("type", "")), result.get("value")
        if kind == RANKER and _parse_ranking(value) is not None:
            continue  # a ranking is not a vote
        if find_kind(result) is not None:
            continue
        if kind not in ANSWER_KEYS or not isinstance(value, dict):
            excluded[kind or "results without a type"] += 1
            continue
        if set(value) - {ANSWER_KEYS[kind]}:
            excluded[f"{kind} of regions"] += 1
            continue
        answer = value.get(ANSWER_KEYS[kind])
        labels = answer if isinstance(answer, list) else [] if answer is None else [answer]
        if not all(map(_is_scalar, labels)):
            excluded[f"nested {kind}"] += 1
            continue
        name = parse_id(result.get("from_name"), "question", "from_name of a result")
        question = export.get_question(name)
        question.number = question.number or kind == "number"
        question.control.update(from_name=name, to_name=str(result.get("to_name", "")), type=kind)
        labels_by_question.setdefault(name, []).extend(labels)
    export.excluded.update(excluded)
    return labels_by_question


def check_server_name(name: object) -> str:
    """Return the name of a server.

    Parameters
    ----------
    name : object
        Name.

    Returns
    -------
    str
        The name, if it is valid.

    Raises
    ------
    UsageError
        If the name is invalid.

    Examples
    --------
    >>> check_server_name("berlin")
    'berlin'
    """
    if isinstance(name, str) and SERVER_NAME.fullmatch(name):
        return name
    raise UsageError(
        f"the name of the Label Studio server is {str(name)[:40]!r}; expected at most 100 letters, digits and . _ -, beginning "
        "with a letter or digit"
    )


def read_min_export(path: Path) -> ExportedAnswers:
    """Read all answers in a JSON_MIN export: one entry per annotation, with answers beside the data of the task.

    Parameters
    ----------
    path : Path
        JSON file.

    Returns
    -------
    ExportedAnswers
        Answers by question.

    Examples
    --------
    >>> entry = '{{"id": 7, "text": "Hi", "mood": "{}", "annotator": {}, "annotation_id": 1, "lead_time": 2.5}}'
    >>> _ = Path("export.json").write_text(f"[{entry.format('good', 1)}, {entry.format('bad', 2)}]")
    >>> read_min_export(Path("export.json")).get_question("mood").labels
    [('good',), ('bad',)]
    """
    export = ExportedAnswers()
    records = read_objects(path, "an annotation of Label Studio's JSON_MIN")
    names = _find_min_questions(records)
    region_keys = {key for record in records for key, value in record.items() if _find_region_types(value)}
    answer_keys = {*_ANNOTATION_KEYS, *names, *region_keys}
    question_names = set(names)
    sheets: list[AnswerSheet] = []
    for number, record in enumerate(records, start=1):
        location = f"entry {number:,}"
        task = parse_id(record.get(OWN_TASK, record.get("id")), "task", location)
        data = {key: record[key] for key in record if key not in answer_keys}
        export.tasks[task] = {"id": record.get("id"), "data": data}
        if record.get("annotator", 0) is None:
            if record.get("annotation_id") is not None:  # otherwise the task has no annotation
                export.excluded[DELETED] += 1
            continue
        worker = parse_worker(record.get("annotator"), location)
        results = list(_iter_min_regions(record))
        export.excluded.update(str(result["type"]) for result in results if find_kind(result) is None)
        regions = parse_regions(results, task, location, export)
        sheets.append(AnswerSheet(task, worker, regions, time=record.get("created_at")))
        answered = [name for name in record if name in question_names]
        if not answered and not results:
            export.excluded["empty"] += 1
        for name in answered:
            labels = list(_iter_min_labels(record[name]))
            question = export.get_question(name)
            question.number = question.number or _find_answer_key(record[name]) == "number"
            time, seconds = record.get("created_at"), record.get("lead_time")
            question.add_answer(task, worker, labels, time=time, seconds=seconds)
    _find_min_texts(records, export)
    add_sheets(export, sheets)
    convert_to_pixels(export)
    return export


def _find_min_texts(records: list[_Record], export: ExportedAnswers) -> None:
    """Mark the questions whose answers look like texts of a text area, because JSON_MIN does not name the control."""
    # The form of these answers names their control.
    named = {name for record in records for name, value in record.items() if _find_answer_key(value)}
    for name, question in export.questions.items():
        if name in named:
            continue
        distinct = dict.fromkeys(label for labels in question.labels for label in labels)
        if not are_texts(distinct, len(distinct), sum(map(len, question.labels))):
            continue
        question.assumed_text = True
        export.notes.append(
            f"the answers to {name!r} look like texts of a text area; JSON_MIN does not say which control they come from, and "
            "JSON does"
        )


def _iter_min_regions(record: _Record) -> Iterator[_Record]:
    """Yield the regions of an annotation in JSON_MIN as results of JSON."""
    for name, regions in record.items():
        types = _find_region_types(regions)
        for kind, value in zip(types, regions if types else (), strict=True):
            place = {key: number for key, number in value.items() if not key.startswith("original_")}
            sizes = {key: value[key] for key in value if key.startswith("original_")}
            yield {"from_name": name, "type": kind, "value": place, **sizes}


def _find_min_questions(records: list[_Record]) -> list[str]:
    """Return the keys that hold answers: they differ between annotations of a task, or have the form of answers."""
    first_records: dict[str, _Record] = {}
    questions: dict[str, None] = {}
    for number, record in enumerate(records, start=1):
        task = parse_id(record.get("id"), "task", f"entry {number:,}")
        first = first_records.setdefault(task, record)
        for key, value in record.items():
            if key in _ANNOTATION_KEYS:
                continue
            if _find_answer_key(value) or (first is not record and first.get(key) != value and _is_scalar(value)):
                questions[key] = None
    if questions or any(_find_region_types(value) for record in records for value in record.values()):
        return list(questions)
    if len(first_records) < len(records):
        raise InputError(
            "answers and data cannot be distinguished in this JSON_MIN, because all annotations of a task agree; "
            "export JSON instead"
        )
    raise InputError(
        "answers and data cannot be distinguished in this JSON_MIN, because no task has two annotations; export JSON "
        "instead"
    )


def _find_region_types(value: object) -> list[str]:
    """Return the types of the regions under a key of JSON_MIN: spans or boxes, which have a position and labels."""
    if not isinstance(value, list) or not all(isinstance(item, dict) and len(item) > 1 for item in value):
        return []
    types = [
        next((key for key in item if key.endswith("labels") and isinstance(item[key], list)), "") for item in value
    ]
    return types if all(types) else []


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _find_answer_key(value: object) -> str:
    """Return the key under which a value of JSON_MIN holds an answer, or "" if it may be data."""
    parts = value if isinstance(value, list) and value else [value]
    keys = {tuple(item) if isinstance(item, dict) else () for item in parts}
    (first, *others) = keys
    return first[0] if not others and len(first) == 1 and first[0] in ANSWER_KEYS.values() else ""


def _iter_min_labels(value: Any) -> Iterator[str]:
    """Yield the labels of an answer in JSON_MIN: a text, {"choices": […]} for several, or [{"rating": 4}]."""
    if key := _find_answer_key(value):
        for item in value if isinstance(value, list) else [value]:
            yield from _iter_min_labels(item[key])
        return
    for item in value if isinstance(value, list) else [value]:
        if _is_scalar(item):
            yield format_label(item)


def _detect(path: Path) -> bool:
    keys = peek_object(path).keys()
    return "data" in keys and bool(keys & {"annotations", "predictions", "completions"})


def _detect_min(path: Path) -> bool:
    return peek_object(path).keys() >= {"id", "annotator", "annotation_id", "lead_time"}


LABEL_STUDIO = make_tool_reader("label-studio", read_export, _detect)
LABEL_STUDIO_MIN = make_tool_reader("label-studio-min", read_min_export, _detect_min)
