"""Actions of a user of Argilla's SDK: fill a dataset, export it, load records into it."""

import json
import sys
from pathlib import Path
from typing import Any

import argilla as rg

#: Answers by user and record: mood, topics, stars. ``None`` is no answer.
ANSWERS: dict[str, list[tuple[str | None, list[str] | None, int | None]]] = {
    "ann": [("good", ["food"], 5), ("bad", ["price"], 2), ("good", ["food", "place"], 4)],
    "bob": [("good", ["food", "price"], 4), ("bad", ["price"], 1)],
    "eva": [("good", ["food"], 5), ("good", None, None)],
}
TEXTS = ["Lovely food!", "Too dear.", "Grüße, 東京 🍜", 'He said "fine",\nand left']


def fill(client: rg.Argilla) -> None:
    """Create a dataset with questions, three annotators and suggestions of a model."""
    workspace = rg.Workspace(name="trial", client=client).create()
    users = {name: rg.User(username=name, password="a-word-for-this-run", client=client).create() for name in ANSWERS}
    for user in users.values():
        user.add_to_workspace(workspace)
    settings = rg.Settings(
        fields=[rg.TextField(name="text")],
        questions=[
            rg.LabelQuestion(name="mood", labels=["good", "bad", "so-so"]),
            rg.MultiLabelQuestion(name="topics", labels=["food", "price", "place"], required=False),
            rg.RatingQuestion(name="stars", values=[1, 2, 3, 4, 5], required=False),
            rg.TextQuestion(name="why", required=False),
            rg.RankingQuestion(name="order", values=["first", "second"], required=False),
        ],
        metadata=[rg.IntegerMetadataProperty(name="page")],
        distribution=rg.TaskDistribution(min_submitted=2),
    )
    dataset = rg.Dataset(name="reviews", workspace="trial", settings=settings, client=client).create()
    records = []
    for place, text in enumerate(TEXTS):
        responses = []
        for name, rows in ANSWERS.items():
            if place < len(rows):
                answers = dict(zip(("mood", "topics", "stars"), rows[place], strict=True))
                for question, value in answers.items():
                    if value is not None:
                        responses.append(rg.Response(question, value, user_id=users[name].id, status="submitted"))
        if place == 3:
            responses.append(rg.Response("mood", "bad", user_id=users["ann"].id, status="draft"))
            responses.append(rg.Response("mood", "bad", user_id=users["bob"].id, status="discarded"))
        if place == 0:
            ranks = [{"value": "first", "rank": 1}, {"value": "second", "rank": 2}]
            responses.append(rg.Response("order", ranks, user_id=users["ann"].id, status="submitted"))
        suggestions = [
            rg.Suggestion("mood", ["good", "bad"][place % 2], score=0.75, agent="bert-1"),
            rg.Suggestion("topics", ["food", "price"], score=[0.5, 0.25], agent="bert-1"),
            rg.Suggestion("stars", 4, score=0.5, agent="bert-1"),
        ]
        records.append(
            rg.Record(
                # The last record has no id, so the server assigns one.
                id=f"r{place}" if place < 3 else None,
                fields={"text": text},
                metadata={"page": place} if place % 2 else None,
                responses=responses,
                # One record has no suggestions.
                suggestions=suggestions if place != 2 else [],
            )
        )
    dataset.records.log(records)
    Path("users.json").write_text(json.dumps({name: str(user.id) for name, user in users.items()}))


def export(client: rg.Argilla, name: str) -> None:
    """Write the records in all formats of the SDK."""
    dataset = client.datasets("reviews", workspace="trial")
    dataset.records.to_json(f"{name}.json")
    Path(f"{name}-flat.json").write_text(json.dumps(dataset.records.to_list(flatten=True)))
    table = dataset.records.to_datasets()
    table.to_parquet(f"{name}.parquet")
    table.to_json(f"{name}.jsonl")


def load(client: rg.Argilla, path: str) -> None:
    """Load suggestions as the documentation describes."""
    client.datasets("reviews", workspace="trial").records.from_json(path)


def sortable(client: rg.Argilla) -> None:
    """Declare the metadata of a queue, without which Argilla refuses it."""
    dataset = client.datasets("reviews", workspace="trial")
    dataset.settings.add(rg.IntegerMetadataProperty(name="wisecrowd_priority"))
    dataset.update()


if __name__ == "__main__":
    address, key, step, *more = sys.argv[1:]
    server: Any = rg.Argilla(api_url=address, api_key=key)
    {"fill": fill, "export": export, "load": load, "sortable": sortable}[step](server, *more)
