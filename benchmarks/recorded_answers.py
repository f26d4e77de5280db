"""Record what every method and command answers, and compare two recordings.

    python benchmarks/recorded_answers.py record before.npz     # on one revision
    python benchmarks/recorded_answers.py record after.npz      # on another
    python benchmarks/recorded_answers.py compare before.npz after.npz

A refactoring must not change the answers. Crowds are made with numpy alone and methods are found through the registry, so
that the script runs on revisions whose modules have other names. Real datasets join where ``WISECROWD_DATA`` is set.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: Largest difference between two recordings that counts as equal, relative to the larger value (or to one).
TOLERANCE = 1e-9
#: Parameters that make a recording short; each is set where a method has it.
SHORT = {"epochs": 4, "n_init": 2, "max_iter": 30}
#: Real crowds that are small enough for every aggregator.
REAL_CROWDS = ("bluebirds", "rte", "face_sentiment")
#: Votes kept of each real crowd.
MOST_VOTES = 4000
#: Commands whose printed text and files are recorded; ``{votes}``, ``{gold}``, ``{features}`` and ``{out}`` are paths.
COMMANDS = {
    "check": "check {votes}",
    "aggregate": "aggregate {votes} -o {out}",
    "aggregate-gold": "aggregate {votes} --gold {gold} -m one-coin -o {out} --proba",
    "learn": "learn {votes} -x {features} -m raykar -o {out}",
    "complete": "complete {votes} -m ds-fill -o {out}",
    "diagnose": "diagnose {votes} -o {out}",
    "compare": "compare {votes} -m majority-vote -m dawid-skene -m one-coin",
    "plan": "plan {votes} --budget 20 -o {out}",
    "simulate": "simulate -o {out} --tasks 50 --workers 8",
    "methods": "methods",
    "cite": "cite dawid-skene",
}


def draw_votes(
    seed: int, n_tasks: int, n_workers: int, n_classes: int, votes_per_task: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw votes of workers with different accuracies, with the true class and two features of every task."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_tasks)
    accuracy = rng.uniform(0.3, 0.95, size=n_workers)
    rows = []
    for task in range(n_tasks):
        for worker in rng.choice(n_workers, size=votes_per_task, replace=False):
            right = rng.random() < accuracy[worker]
            label = truth[task] if right else rng.integers(n_classes)
            rows.append((f"t{task:03}", f"w{worker:02}", "abcdefgh"[label]))
    return pd.DataFrame(rows, columns=["task", "worker", "label"]), truth


def crowds() -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, crowd, features by task, and the truth of a few tasks."""
    import wisecrowd as wc

    for name, shape in {
        "binary": (1, 80, 12, 2, 4),
        "four classes": (2, 90, 10, 4, 5),
        "sparse": (3, 60, 20, 3, 2),
    }.items():
        votes, truth = draw_votes(*shape)
        tasks = [f"t{task:03}" for task in range(shape[1])]
        noise = np.random.default_rng(9).normal(size=(shape[1], 4))
        features = pd.DataFrame(noise + np.eye(4)[truth % 4] * 2, index=tasks, columns=list("wxyz"))
        gold = {task: "abcdefgh"[truth[place]] for place, task in enumerate(tasks[:6])}
        yield name, wc.Crowd.from_frame(votes), features, gold if name == "four classes" else None
    if os.environ.get("WISECROWD_DATA"):
        for name in REAL_CROWDS:
            folder = Path(os.environ["WISECROWD_DATA"]) / name
            if not folder.exists():
                continue
            votes = pd.read_parquet(folder / "annotations.parquet")[["task", "worker", "label"]]
            votes = votes[votes["task"].isin(sorted(votes["task"].unique())[: MOST_VOTES // 10])]
            yield name, wc.Crowd.from_frame(votes, duplicates="first"), None, None


def record_methods() -> dict[str, np.ndarray]:
    """Fit every method on every crowd that suits it; a refusal is recorded by the name of its error."""
    import wisecrowd as wc

    arrays: dict[str, np.ndarray] = {}
    numbers = pd.DataFrame(
        [(f"t{t}", f"w{w}", 3.0 * t + np.sin(5 * t + w) * (1 + w)) for t in range(30) for w in range(6) if (t + w) % 3],
        columns=["task", "worker", "label"],
    )
    every = [*crowds(), ("numeric", wc.Crowd.from_frame(numbers, numeric=True), None, None)]
    for name, method in wc.methods().items():
        kind = method.__module__.split(".")[1]
        for crowd_name, crowd, features, gold in every:
            if kind != "aggregate" and features is None:
                continue
            started = time.perf_counter()
            key = f"{name} / {crowd_name}"
            short = {param: value for param, value in SHORT.items() if param in method().get_params()}
            fitted = method(**short)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    tables = fit(fitted, kind, crowd, features, gold)
                except Exception as error:  # that it refuses is an answer, too
                    tables = {"error": np.array(type(error).__name__)}
            arrays |= {f"{key} / {table}": values for table, values in tables.items()}
            print(f"{key:45} {time.perf_counter() - started:6.2f} s  {', '.join(tables)}", file=sys.stderr)
    return arrays


def fit(method: Any, kind: str, crowd: Any, features: Any, gold: Any) -> dict[str, np.ndarray]:
    """Fit a method and return what it answers, as arrays."""
    if kind == "learn":
        method.fit(features, crowd, truth=gold)
        arrays = {"predict_proba": method.predict_proba(features)}
    elif kind == "complete":
        filled = method.complete(crowd, features if method.uses_features else None)
        return {"label": np.asarray(filled.label), "task": np.asarray(filled.task), "weight": np.asarray(filled.weight)}
    else:
        needed = features if getattr(method, "uses_features", False) else None
        method.fit(crowd, needed, truth=gold)
        arrays = {}
    if hasattr(method, "posterior_"):
        arrays["posterior"] = np.asarray(method.posterior_)
        arrays["confusion"] = np.asarray(method.confusion_)
    else:
        arrays["labels"] = np.asarray(method.labels_)
    workers = method.workers_
    arrays["workers"] = workers.select_dtypes("number").to_numpy(dtype=float)
    return arrays


def record_commands() -> dict[str, np.ndarray]:
    """Run every command in a folder of its own and keep what it prints and writes, times and paths left out."""
    texts: dict[str, np.ndarray] = {}
    votes, truth = draw_votes(5, 60, 9, 3, 4)
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            votes.to_csv(place / "votes.csv", index=False)
            tasks = [f"t{task:03}" for task in range(60)]
            pd.DataFrame({"task": tasks[:8], "label": ["abc"[label] for label in truth[:8]]}).to_csv(
                place / "gold.csv", index=False
            )
            table = np.random.default_rng(4).normal(size=(60, 3)) + np.eye(3)[truth]
            pd.DataFrame(table, columns=list("xyz")).assign(task=tasks).to_csv(place / "features.csv", index=False)
            words = command.format(votes="votes.csv", gold="gold.csv", features="features.csv", out="out").split()
            run = subprocess.run(
                [sys.executable, "-m", "wisecrowd", *words], cwd=place, capture_output=True, text=True,
                env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"},
            )  # fmt: skip
            texts[f"command {name} / exit"] = np.array(run.returncode)
            texts[f"command {name} / printed"] = np.array(run.stdout)
            for file in sorted((place / "out").rglob("*")) if (place / "out").exists() else []:
                if file.is_file() and file.suffix == ".csv":
                    texts[f"command {name} / {file.name}"] = np.array(file.read_text(encoding="utf-8"))
    return texts


def compare(before: Path, after: Path) -> int:
    """Print every difference between two recordings; return how many there are."""
    one, two = np.load(before, allow_pickle=False), np.load(after, allow_pickle=False)
    differences = equal = bitwise = 0
    for key in sorted({*one.files, *two.files}):
        if key not in one.files or key not in two.files:
            print(f"only in {before if key in one.files else after}: {key}")
            differences += 1
            continue
        a, b = one[key], two[key]
        if a.dtype.kind in "fiu" and b.dtype.kind in "fiu" and a.shape == b.shape:
            size = np.maximum(1, np.maximum(np.abs(a), np.abs(b)))
            gap = np.nan_to_num(np.abs(a - b) / size, nan=0.0).max(initial=0.0) if a.size else 0.0
            bitwise += gap == 0
            same = (
                gap <= TOLERANCE and (np.isnan(a) == np.isnan(b)).all()
                if a.dtype.kind == "f" and b.dtype.kind == "f"
                else gap == 0
            )
            if not same:
                print(f"{key}: largest difference {gap:.3g}")
        else:
            same = a.shape == b.shape and bool((a == b).all())
            bitwise += same
            if not same:
                print(f"{key}: differs\n{_text_difference(a, b)}")
        equal += same
        differences += not same
    print(f"{equal} recordings equal ({bitwise} to the bit), {differences} differ")
    return differences


def _text_difference(a: np.ndarray, b: np.ndarray) -> str:
    import difflib

    if a.ndim or b.ndim:
        return f"  shapes {a.shape} and {b.shape}"
    lines = difflib.unified_diff(str(a).splitlines(), str(b).splitlines(), lineterm="", n=0)
    return "\n".join(f"  {line}" for line in list(lines)[2:14])


def main() -> None:
    """Record or compare, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--only", choices=["methods", "commands"])
    options = parser.parse_args()
    if options.action == "compare":
        sys.exit(compare(*options.files) > 0)
    arrays = {} if options.only == "commands" else record_methods()
    if options.only != "methods":
        arrays |= record_commands()
    np.savez_compressed(options.files[0], **arrays)


if __name__ == "__main__":
    main()
