"""Write tables with the answers of several annotators with ``datasets``."""

from datasets import ClassLabel, Dataset, Features, List, Sequence, Value

ANIMALS = ClassLabel(names=["cat", "dog", "eel"])
TASKS, WORKERS = ["t1", "t2", "t3"], [["ann", "bob"], ["bob"], ["ann", "bob", "cy"]]
LABELS = [[0, 1], [1], [2, 2, 0]]
WORD = Value("string")


def main() -> None:
    """Write the four layouts of annotators and labels."""
    votes = [
        [{"annotator": worker, "label": label} for worker, label in zip(*pair, strict=True)]
        for pair in zip(WORKERS, LABELS, strict=True)
    ]
    tables = {
        "lists": (
            {"id": TASKS, "text": ["a", "b", "ü"], "annotators": WORKERS, "labels": LABELS},
            {"id": WORD, "text": WORD, "annotators": List(WORD), "labels": List(ANIMALS)},
        ),
        "objects": (
            {"id": TASKS, "annotations": votes},
            {"id": WORD, "annotations": List({"annotator": WORD, "label": ANIMALS})},
        ),
        "sequence": (
            {
                "id": TASKS,
                "annotations": [
                    {"annotator": worker, "label": label} for worker, label in zip(WORKERS, LABELS, strict=True)
                ],
            },
            {"id": WORD, "annotations": Sequence({"annotator": WORD, "label": ANIMALS})},
        ),
        "columns": (
            {"id": TASKS, "annotator_1": [0, -1, 2], "annotator_2": [1, 1, 2], "annotator_3": [-1, -1, 0]},
            {"id": WORD, "annotator_1": ANIMALS, "annotator_2": ANIMALS, "annotator_3": ANIMALS},
        ),
    }
    for name, (columns, features) in tables.items():
        table = Dataset.from_dict(columns, features=Features(features))
        table.to_parquet(f"{name}.parquet")
        table.to_json(f"{name}.jsonl")


if __name__ == "__main__":
    main()
