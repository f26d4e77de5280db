"""JSON bodies of requests and responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    TypeAdapter,
)

from wisecrowd.io.tools.exported_answers import format_label
from wisecrowd.io.tools.label_sets import format_label_set
from wisecrowd.service.events import VoteRecord

#: Maximum length of a name; longer ones would not fit the index of some databases.
MAX_NAME_CHARACTERS = 1_000
#: Maximum number of votes, truths or tasks in a request, so that one request does not block the others.
MAX_ITEMS_PER_REQUEST = 10_000
#: Question of votes that name none.
DEFAULT_QUESTION = "votes"
#: Largest time in seconds since 1970 (the year 5138); larger numbers are probably milliseconds.
MAX_SECONDS = 1e11

#: Characters that a database cannot store.
_INVALID_CHARACTERS = re.compile("[\0\ud800-\udfff]")


def validate_name(value: object) -> str:
    """Return a name as the database stores it.

    Parameters
    ----------
    value : str, int, float or bool
        Name as JSON has it.

    Returns
    -------
    str
        Name.

    Raises
    ------
    ValueError
        If the name is empty, too long or contains invalid characters.

    Examples
    --------
    >>> validate_name(7)
    '7'
    >>> validate_name(" ")
    Traceback (most recent call last):
        ...
    ValueError: name is empty
    """
    text = format_label(value)
    if not text.strip():
        raise ValueError("name is empty")
    if len(text) > MAX_NAME_CHARACTERS:
        raise ValueError(f"name has more than {MAX_NAME_CHARACTERS} characters")
    if _INVALID_CHARACTERS.search(text):
        raise ValueError("name contains invalid characters (NUL or lone surrogate)")
    return text


def _validate_label(value: Any) -> str:
    if isinstance(value, list):  # a set of options; their order and repetitions carry no meaning
        return validate_name(format_label_set(tuple(sorted({validate_name(option) for option in value}))))
    return validate_name(value)


def _validate_time(value: datetime) -> datetime:
    if value.timestamp() < 0:
        raise ValueError("time is before 1970")
    return value


Name = Annotated[StrictStr | StrictInt, AfterValidator(validate_name)]
QuestionName = Annotated[StrictStr, Field(min_length=1, max_length=MAX_NAME_CHARACTERS), AfterValidator(validate_name)]
Label = Annotated[StrictStr | StrictInt | StrictBool | list[StrictStr], AfterValidator(_validate_label)]
Time = (
    Annotated[AwareDatetime, Field(strict=True), AfterValidator(_validate_time)]
    | Annotated[float, Field(strict=True, ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
)
#: Expected value of each field, for error messages.
EXPECTED = {
    "task": "a string or an integer",
    "worker": "a string or an integer",
    "label": "a string, an integer, a boolean or a list of strings",
    "question": "a string",
    "id": "a string or an integer",
    "time": "a date and time with a time zone (2026-05-01T10:00:00Z) or seconds since 1970",
    "tasks": "a list of strings or integers",
}
#: Other parts of a request that an error can refer to.
_REQUEST_PARTS = ("query", "body", "start", "limit")


def summarize_errors(errors: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one message for each invalid field of a request.

    Pydantic reports one error for each alternative of a union. The invalid values are left out, because they may be long or
    not representable in JSON.

    Parameters
    ----------
    errors : iterable of mapping
        Errors as pydantic reports them.

    Returns
    -------
    list of dict
        Location (``loc``) and message (``msg``) of each error.

    Examples
    --------
    >>> errors = [{"type": "string_type", "loc": ("list[Vote]", 3, "label", "str"), "msg": "Input should be a valid string"}]
    >>> summarize_errors(errors)
    [{'loc': [3, 'label'], 'msg': 'expected a string, an integer, a boolean or a list of strings'}]
    """
    messages: dict[tuple[Any, ...], dict[str, Any]] = {}
    for error in errors:
        location = [
            part for part in error["loc"] if isinstance(part, int) or part in EXPECTED or part in _REQUEST_PARTS
        ]
        if error["type"] in ("missing", "extra_forbidden"):
            location = [part for part in error["loc"] if isinstance(part, int)] + [error["loc"][-1]]
        field = next((part for part in reversed(location) if isinstance(part, str)), None)
        is_wrong_type = error["type"].endswith(("_type", "_parsing")) or error["type"] == "timezone_aware"
        message = f"expected {EXPECTED[field]}" if field in EXPECTED and is_wrong_type else error["msg"]
        messages.setdefault(tuple(location), {"loc": location, "msg": message})
    if (
        len(messages) > 1
    ):  # an error without a location only says that a single vote is not a list, or a list not a vote
        messages.pop((), None)
    return list(messages.values())


# ---------------------------------------------------------------------- requests


def _shorten_description(schema: dict[str, Any]) -> None:
    """Keep the first paragraph of a docstring in the OpenAPI description; the rest is for Python users."""
    schema["description"] = schema.get("description", "").split("\n\n")[0]


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=_shorten_description)


class Vote(_RequestBody):
    """Label that a worker gives to a task.

    Examples
    --------
    >>> Vote(task=7, worker="ann", label="good").to_record().task
    '7'
    """

    task: Name = Field(examples=["t1"], description="Task id.")
    worker: Name = Field(examples=["ann"], description="Worker id.")
    label: Label = Field(examples=["good"], description="Label; a list where several options may be chosen.")
    question: QuestionName = Field(default=DEFAULT_QUESTION, examples=["mood"], description="Name of the question.")
    id: Name | None = Field(
        default=None,
        description="Id of the vote. A vote sent again with the same id replaces the previous one. "
        "Without an id, a worker has one vote on a task.",
    )
    time: Time | None = Field(
        default=None, description="Time of the vote: a date with a time zone, or seconds since 1970."
    )

    def to_record(self) -> VoteRecord:
        """Return the vote as the database stores it.

        Returns
        -------
        VoteRecord
            Vote.
        """
        seconds = self.time.timestamp() if isinstance(self.time, datetime) else self.time
        return VoteRecord(self.question, str(self.task), str(self.worker), str(self.label), seconds)


#: Validator of the body of ``POST /votes``: one vote or a list of votes.
VOTES: TypeAdapter[Vote | list[Vote]] = TypeAdapter(
    Vote | Annotated[list[Vote], Field(min_length=1, max_length=MAX_ITEMS_PER_REQUEST)]
)


class TaskTruth(_RequestBody):
    """True class of a gold task.

    Examples
    --------
    >>> TaskTruth(task="t1", label="good").label
    'good'
    """

    task: Name = Field(examples=["t1"], description="Task id.")
    label: Label | None = Field(examples=["good"], description="True class; null deletes the gold label.")
    question: QuestionName = Field(default=DEFAULT_QUESTION, examples=["mood"], description="Name of the question.")


#: Body of ``POST /truth``: one gold label or a list of them.
TaskTruths = TaskTruth | Annotated[list[TaskTruth], Field(min_length=1, max_length=MAX_ITEMS_PER_REQUEST)]


class TaskRegistration(_RequestBody):
    """Tasks that may have no votes yet.

    Examples
    --------
    >>> TaskRegistration(tasks=["t1", "t2"]).question
    'votes'
    """

    tasks: list[Name] = Field(min_length=1, max_length=MAX_ITEMS_PER_REQUEST, description="Task ids.")
    question: QuestionName = Field(default=DEFAULT_QUESTION, examples=["mood"], description="Name of the question.")


# ---------------------------------------------------------------------- responses


class VoteReceipt(BaseModel):
    """Outcome of a request that writes; everything in it is on disk.

    Examples
    --------
    >>> VoteReceipt(new=1).unchanged
    0
    """

    model_config = ConfigDict(json_schema_extra=_shorten_description)

    new: int = Field(default=0, description="Number of new votes, or of registrations with a new task.")
    changed: int = Field(default=0, description="Number of votes that were changed or deleted.")
    unchanged: int = Field(default=0, description="Number of votes that were stored before.")
    warnings: list[str] | None = Field(
        default=None, description="Labels that probably mean the same, but are different classes; missing without any."
    )


class FitSummary(BaseModel):
    """The last fit to all votes of a question."""

    n_votes: int = Field(description="Number of votes in the fit.")
    seconds: float = Field(description="Duration of the fit.")
    n_iter: int = Field(description="Number of EM iterations.")
    converged: bool = Field(description="Whether EM converged.")
    seconds_ago: float = Field(description="Time since the fit.")
    changed_share: float | None = Field(
        description="Share of labels that the fit changed; it determines when the next fit comes."
    )


class AccuracySummary(BaseModel):
    """Expected share of right labels with an interval."""

    accuracy: float = Field(description="Expected share of right labels, among tasks with votes or gold.")
    low: float = Field(description="Lower bound of the interval.")
    high: float = Field(description="Upper bound of the interval.")
    level: float = Field(description="Probability of the interval.")
    tasks: int = Field(description="Number of labels.")
    gold_tasks: int = Field(description="Number of gold tasks behind the estimate.")


class QuestionSummary(BaseModel):
    """Counts and state of a question."""

    question: str = Field(description="Name of the question.")
    method: str = Field(description="Method that infers the labels.")
    n_votes: int = Field(description="Number of votes.")
    n_tasks: int = Field(description="Number of tasks.")
    n_workers: int = Field(description="Number of workers.")
    classes: list[str] = Field(description="Names of the classes.")
    n_gold: int = Field(description="Number of gold tasks.")
    n_finished: int = Field(description="Number of tasks that need no more votes.")
    expected_accuracy: AccuracySummary | None = Field(
        description="Expected share of right labels with an interval; null before the first fit."
    )
    mean_confidence: float | None = Field(description="Mean confidence of the labels; null before the first fit.")
    flagged_workers: dict[str, str] = Field(
        description="Flags by worker, as in the report; those with most votes first."
    )
    recommended_method: str | None = Field(description="Recommended method; null before the first calibration.")
    warnings: list[str] = Field(description="Reasons not to trust the labels.")
    fit: FitSummary | None = Field(description="Last fit; null before the first one.")
    is_current: bool = Field(description="Whether the last fit covers all votes.")
    fit_error: str | None = Field(description="Error of the last fit; null where it succeeded.")


class TaskAnswer(BaseModel):
    """Inferred label of a task."""

    task: str = Field(description="Task id.")
    label: str | None = Field(description="Inferred label; null for a task without votes.")
    probability: float | None = Field(description="Posterior probability of the label under the model.")
    confidence: float | None = Field(
        description="Calibrated probability that the label is right; null before the first fit."
    )
    n_votes: int = Field(description="Number of votes on the task.")
    is_gold: bool = Field(description="Whether the task has a gold label.")
    is_finished: bool = Field(description="Whether the task needs no more votes.")


class TaskDetails(TaskAnswer):
    """Inferred label of a task, with the posterior and the votes."""

    probabilities: dict[str, float] = Field(description="Posterior probability of each class.")
    votes: dict[str, str] = Field(description="Label of each worker.")


class QuestionAnswers(BaseModel):
    """A page of inferred labels, in order of arrival of the tasks."""

    tasks: list[TaskAnswer] = Field(description="Inferred labels.")
    total: int = Field(description="Number of tasks of the question.")
    next: int | None = Field(description="Value of start for the next page; null on the last page.")


class StoredVote(BaseModel):
    """A vote or a gold label in the database."""

    task: str = Field(description="Task id.")
    worker: str | None = Field(description="Worker id; null for a gold label.")
    label: str = Field(description="Label of the vote, or true class.")
    time: float | None = Field(description="Time of the vote in seconds since 1970.")
    id: str | None = Field(description="Id that the vote was sent with.")


class StoredVotes(BaseModel):
    """A page of votes, in order of arrival."""

    votes: list[StoredVote] = Field(description="Votes and gold labels.")
    next: int | None = Field(description="Value of after for the next page; null on the last page.")


class WorkerSummary(BaseModel):
    """Quality of a worker."""

    worker: str = Field(description="Worker id.")
    n_votes: int = Field(description="Number of votes.")
    accuracy: float | None = Field(description="Estimated accuracy; null without votes.")
    low: float | None = Field(description="Lower bound of the 90 % interval; null before the first calibration.")
    high: float | None = Field(description="Upper bound of the 90 % interval; null before the first calibration.")
    p_spammer: float | None = Field(description="Probability that the votes are independent of the truth.")
    p_adversary: float | None = Field(description="Probability that the votes avoid the truth.")
    flags: str = Field(description="Flags, as in the report; an empty string if there are none.")
    why: str = Field(description="Reasons for the flags.")


class QuestionWorkers(BaseModel):
    """A page of workers, in order of arrival."""

    workers: list[WorkerSummary] = Field(description="Workers with their quality.")
    total: int = Field(description="Number of workers of the question.")
    next: int | None = Field(description="Value of start for the next page; null on the last page.")


class SuggestedTask(TaskAnswer):
    """A task to ask about next."""

    gain: float = Field(description="Expected reduction of the entropy of the task by one more vote, in nats.")


class TaskSuggestions(BaseModel):
    """Tasks to ask about next, with the most informative first."""

    tasks: list[SuggestedTask] = Field(description="Tasks, with the most informative first.")
    reason: str = Field(description="Reason why the list is empty; an empty string otherwise.")


class ServiceHealth(BaseModel):
    """State of the service."""

    status: str = Field(description="'ok' while the service answers requests.")
    version: str = Field(description="Version of wisecrowd.")


class ErrorMessage(BaseModel):
    """Description of an error."""

    detail: Any = Field(description="Message, or a list with location and message of each invalid field.")
