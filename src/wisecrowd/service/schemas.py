"""What the service takes and gives, as JSON."""

from __future__ import annotations

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

from wisecrowd.io.tools.answers import written_set
from wisecrowd.io.tools.gathering import spelled
from wisecrowd.service.events import Entry

#: Characters of a name, and votes in a request.
LONGEST, MOST = 1_000, 10_000
#: Where no question is named, all votes belong to this one.
QUESTION = "votes"


def clean(value: Any) -> str:
    """A name as it is kept, or why it cannot be one.

    >>> clean(7)
    '7'
    >>> clean(" ")
    Traceback (most recent call last):
        ...
    ValueError: a name that is not empty was wanted
    """
    text = spelled(value)
    if not text.strip():
        raise ValueError("a name that is not empty was wanted")
    if len(text) > LONGEST:
        raise ValueError(f"a name of {LONGEST} characters at most was wanted")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("a text was wanted; this has characters that are none")
    return text


def _label(value: Any) -> str:
    if isinstance(value, list):  # the options that were chosen, in whatever order
        return clean(written_set(tuple(sorted({clean(option) for option in value}))))
    return clean(value)


Name = Annotated[StrictStr | StrictInt, AfterValidator(clean)]
Text = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST), AfterValidator(clean)]
Label = Annotated[StrictStr | StrictInt | StrictBool | list[StrictStr], AfterValidator(_label)]


def _since_1970(value: datetime) -> datetime:
    if value.timestamp() < 0:
        raise ValueError("a time since 1970 was wanted")
    return value


Moment = (
    Annotated[AwareDatetime, Field(strict=True), AfterValidator(_since_1970)]
    | Annotated[float, Field(strict=True, ge=0, le=1e11, allow_inf_nan=False)]
)
#: What a field takes, for messages.
WANTED = {
    "task": "a text or a whole number",
    "worker": "a text or a whole number",
    "label": "a text, a whole number, true or false, or a list of texts",
    "question": "a text",
    "id": "a text or a whole number",
    "time": "a date and time with its time zone (2026-05-01T10:00:00Z), or seconds since 1970",
    "tasks": "a list of texts or whole numbers",
}


def told_wrong(problems: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was wrong with a request, once for each place: where, what was wanted, and how it was said to be wrong.

    What came is not said again: it may be long, and of numbers that JSON has no word for.

    >>> told_wrong([{"type": "string_type", "loc": ("list[Vote]", 3, "label", "str"), "msg": "Input should be a valid string"}])
    [{'loc': [3, 'label'], 'msg': 'a text, a whole number, true or false, or a list of texts was wanted'}]
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in problems:
        place = [part for part in each["loc"] if isinstance(part, int) or part in WANTED or part in _SAID]
        if each["type"] in ("missing", "extra_forbidden"):
            place = [part for part in each["loc"] if isinstance(part, int)] + [each["loc"][-1]]
        field = next((part for part in reversed(place) if isinstance(part, str)), None)
        is_kind = each["type"].endswith(("_type", "_parsing")) or each["type"] == "timezone_aware"
        said = f"{WANTED[field]} was wanted" if field in WANTED and is_kind else each["msg"]
        found.setdefault(tuple(place), {"loc": place, "msg": said})
    if len(found) > 1:  # that one vote is no list, nor a list one vote, goes without saying
        found.pop((), None)
    return list(found.values())


#: Parts of a request in which something can be wrong, beside the fields of a vote.
_SAID = ("query", "body", "start", "limit")


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Vote(_Form):
    """What a worker says of a task.

    >>> Vote(task=7, worker="ann", label="good").entry.task
    '7'
    """

    task: Name = Field(examples=["t1"])
    worker: Name = Field(examples=["ann"])
    label: Label = Field(examples=["good"], description="A list where several options may be chosen.")
    question: Text = Field(default=QUESTION, examples=["mood"])
    id: Name | None = Field(
        default=None,
        description="Sent again with the same id, a vote is the same vote, and changes where it says something else. "
        "Without one, a worker has one vote on a task.",
    )
    time: Moment | None = Field(
        default=None, description="When it was cast: with its time zone, or in seconds since 1970."
    )

    @property
    def entry(self) -> Entry:
        """As it is kept."""
        at = self.time.timestamp() if isinstance(self.time, datetime) else self.time
        return Entry(self.question, str(self.task), str(self.worker), str(self.label), at)


#: One vote or several.
VOTES: TypeAdapter[Vote | list[Vote]] = TypeAdapter(Vote | Annotated[list[Vote], Field(min_length=1, max_length=MOST)])
_WHERE = "#/components/schemas/{model}"


def described(body: TypeAdapter[Any]) -> dict[str, Any]:
    """The body of a request in OpenAPI, where it is not FastAPI that reads it.

    >>> list(described(VOTES)["requestBody"]["content"])
    ['application/json']
    """
    schema = body.json_schema(ref_template=_WHERE)
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def schemas(body: TypeAdapter[Any]) -> dict[str, Any]:
    """What such a description refers to.

    >>> list(schemas(VOTES))
    ['Vote']
    """
    found: dict[str, Any] = body.json_schema(ref_template=_WHERE).get("$defs", {})
    return found


class Truth(_Form):
    """What is true of a task, for sure; without a label, it is not known any more.

    >>> Truth(task="t1", label="good").label
    'good'
    """

    task: Name = Field(examples=["t1"])
    label: Label | None = Field(examples=["good"])
    question: Text = Field(default=QUESTION, examples=["mood"])


#: One truth or several.
TRUTHS = Truth | Annotated[list[Truth], Field(min_length=1, max_length=MOST)]


class Tasks(_Form):
    """Tasks that can be asked about, though nobody voted on them yet.

    >>> Tasks(tasks=["t1", "t2"]).question
    'votes'
    """

    tasks: list[Name] = Field(min_length=1, max_length=MOST)
    question: Text = Field(default=QUESTION, examples=["mood"])


class Kept(BaseModel):
    """What came of what was sent; all of it is on the disk.

    >>> Kept(new=1).same
    0
    """

    new: int = Field(
        default=0, description="Votes that were not there; or requests to expect tasks of which some were not."
    )
    changed: int = Field(default=0, description="Votes that say something else than before, or were taken back.")
    same: int = Field(default=0, description="Votes that were there already.")


class Fit(BaseModel):
    """The last fit to all votes."""

    votes: int
    seconds: float
    iterations: int
    converged: bool
    seconds_ago: float
    changed: float | None = Field(
        description="Share of the labels that it changed; fits come as often as that is much."
    )


class Overview(BaseModel):
    """A question in figures."""

    question: str
    method: str = Field(description="By which the answers are found.")
    votes: int
    tasks: int
    workers: int
    classes: list[str]
    gold: int
    may_stop: int = Field(description="Tasks that need no more votes.")
    expected_accuracy: float | None = Field(description="Share of labels that should be right.")
    fit: Fit | None
    is_current: bool = Field(description="Whether the last fit knows all votes.")
    failed: str | None = Field(description="Why the last fit failed, if it did.")


class Answer(BaseModel):
    """What is true of a task, as far as votes can tell."""

    task: str
    label: str | None = Field(description="None where nobody voted.")
    confidence: float | None = Field(description="Probability of the label, by the model.")
    belief: float | None = Field(
        description="The same, no surer than votes that were hidden from the model bear out; none before that was looked at."
    )
    votes: int
    gold: bool = Field(description="Whether the truth was told.")
    may_stop: bool = Field(description="Whether it needs no more votes.")


class FullAnswer(Answer):
    """A task with the probability of every class, and who said what."""

    probabilities: dict[str, float]
    said: dict[str, str] = Field(description="Worker and label.")


class Answers(BaseModel):
    """Some tasks, in the order in which they came."""

    answers: list[Answer]
    total: int
    next: int | None = Field(description="Where to go on (start=…), if there are more.")


class Said(BaseModel):
    """A vote as it is kept; without a worker, the truth of a task."""

    task: str
    worker: str | None
    label: str
    time: float | None = Field(description="Seconds since 1970.")
    id: str | None = Field(description="The id that it was sent with.")


class AllSaid(BaseModel):
    """Some votes, in the order in which they came."""

    votes: list[Said]
    next: int | None = Field(description="Where to go on (after=…), if there are more.")


class Worker(BaseModel):
    """How good a worker is."""

    worker: str
    votes: int
    accuracy: float | None
    p_spammer: float | None = Field(description="Probability that answers have nothing to do with the truth.")
    p_adversary: float | None = Field(description="Probability that answers avoid the truth.")


class Workers(BaseModel):
    """Some workers, in the order in which they came."""

    workers: list[Worker]
    total: int
    next: int | None


class Ask(Answer):
    """A task to ask about."""

    gain: float = Field(description="Entropy that the answer is expected to take away, in nats.")


class Asks(BaseModel):
    """What to ask next, the most telling first."""

    asks: list[Ask]
    why: str = Field(description="Why there is nothing to ask, if so.")


class Health(BaseModel):
    """That the service is there."""

    status: str
    version: str


class Problem(BaseModel):
    """What was wrong, and what to do."""

    detail: Any
