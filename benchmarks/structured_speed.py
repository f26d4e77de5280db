"""Speed of masks and texts beside crowd-kit in the same run, and processor time and memory of large crowds.

The peer runs in an environment of its own: python -m venv peers && peers/bin/pip install crowd-kit pyarrow "pandas<3"
(TextHRRASA of crowd-kit 1.4.2 raises a ValueError with pandas 3.1.1, and runs with pandas 2.3.3).

WISECROWD_ANSWER_TYPES=... python benchmarks/structured_speed.py [--peer peers/bin/python] [--part texts] [--large] [--write]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import measuring
import numpy as np
import pandas as pd

import wisecrowd as wc

REPEATS = 3
#: Workers per image; numbers of images and their sides.
N_VOTES, SIZES = 5, ((300, 64), (40, 256))
N_TEXTS = 300
#: Dimensions of embeddings, which are those of small sentence encoders.
N_DIMENSIONS = 384
#: Our method, that of the peer, and whether they do the same work. Both have the same vectors of texts, which nobody computes.
MASKS = (
    ("majority", "majority", True),
    ("em", "em", True),
    ("rasa", "rasa", True),
    ("staple", None, False),
)
TEXTS = (
    ("rover", "rover", True),
    ("weighted rover", None, False),
    ("text rasa", "text rasa", True),
    ("text hrrasa", "text hrrasa", True),
    ("medoid", None, False),
)
LARGE = ("boxes", "spans", "points", "texts", "masks")
RESULTS = Path(__file__).parent / "results"


def write_masks(folder: Path, n_images: int, side: int) -> None:
    made = wc.simulate_masks(
        n_tasks=n_images, n_workers=20, votes_per_task=N_VOTES, height=side, width=side,
        sensitivity=1.0, specificity=1.0, boundary_noise=0.1, random_state=0,
    )  # fmt: skip
    frame = made.crowd.to_frame()[["task", "worker"]]
    frame.assign(task=frame["task"].str.replace("t", "").astype(int)).to_parquet(folder / "votes.parquet")
    np.save(folder / "masks.npy", np.stack([made.crowd.masks.to_array(row) for row in range(made.crowd.n_votes)]))


def write_texts(folder: Path, source: Path) -> None:
    votes = pd.read_parquet(source / "crowdspeech_dev" / "answers.parquet")[["task", "worker", "text"]]
    votes = votes[votes["task"].isin(sorted(votes["task"].unique())[:N_TEXTS])].reset_index(drop=True)
    votes["text"] = votes["text"].str.lower().str.replace(r"[^a-z0-9' ]", "", regex=True)
    votes["text"] = votes["text"].str.split().str.join(" ")
    votes.to_parquet(folder / "texts.parquet")
    embed(votes["text"].unique()).to_parquet(folder / "vectors.parquet")


def embed(texts: Any) -> pd.DataFrame:
    """Return vectors of length 1 that count the groups of three letters of each text; no model has to be downloaded."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectors = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=N_DIMENSIONS).transform(texts)
    table = pd.DataFrame(vectors.toarray(), index=pd.Index(texts, name="text"), columns=map(str, range(N_DIMENSIONS)))
    table.loc[table.eq(0).all(axis=1), "0"] = 1.0  # an empty text
    return table


def compare(
    folder: Path, names: tuple[tuple[str, str | None, bool], ...], peer: str | None, title: str
) -> list[dict[str, Any]]:
    our_names = list(dict.fromkeys(name for name, _, _ in names))
    peer_names = [peer_name for _, peer_name, _ in names if peer_name is not None]
    our_runs, peer_runs = [], []
    for _ in range(REPEATS):  # in turns, so that the load of the machine meets both
        our_runs.append(measuring.run(measuring.python("programs/structured_ours.py", folder, *our_names)))
        if peer is not None:
            command = measuring.python("programs/structured_peers.py", folder, *peer_names, interpreter=peer)
            peer_runs.append(measuring.run(command))
    rows = []
    for name, peer_name, is_same in names:
        ours = [run[name] for run in our_runs]
        theirs = [run[peer_name] for run in peer_runs] if peer_name is not None else []
        row: dict[str, Any] = {"votes": title, "method": name, "peer": peer_name, "same_work": is_same}
        row["seconds"] = statistics.median(run["seconds"] for run in ours)
        row["conversion"] = statistics.median(run["conversion"] for run in ours)
        if theirs:
            row["peer_seconds"] = statistics.median(run["seconds"] for run in theirs)
            row["ratio"] = row["peer_seconds"] / row["seconds"]
            row["ratio_with_conversion"] = row["peer_seconds"] / (row["seconds"] + row["conversion"])
            if is_same:
                row["agreement"] = measure_agreement(folder, name)
        rows.append(row)
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    return rows


def measure_agreement(folder: Path, name: str) -> float:
    """Return the mean intersection over union of masks, or the share of equal texts."""
    if (folder / f"ours-{name}.npy").exists():
        one, other = (np.load(folder / f"{who}-{name}.npy") > 0 for who in ("ours", "peer"))
        return float(((one & other).sum(axis=(1, 2)) / np.maximum((one | other).sum(axis=(1, 2)), 1)).mean())
    ours, peer = (pd.read_parquet(folder / f"{who}-{name}.parquet")["text"] for who in ("ours", "peer"))
    return float((ours == peer.loc[ours.index]).mean())


def measure_large(n_tasks: int) -> list[dict[str, Any]]:
    """Return processor seconds and peak memory of 5 votes per task, each kind in a process of its own."""
    rows = []
    for kind in LARGE:
        row = {"answers": kind, **measuring.run(measuring.python("programs/structured_large.py", kind, n_tasks))}
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--peer", help="Python of an environment with crowd-kit; without it, only our times are measured."
    )
    parser.add_argument("--part", choices=("masks", "texts"), help="Measure one part; --write keeps the others.")
    parser.add_argument("--large", action="store_true", help="Also measure 100,000 tasks with five workers each.")
    parser.add_argument("--write", action="store_true", help="Write benchmarks/results/structured_speed.json.")
    arguments = parser.parse_args()
    rows = []
    for n_images, side in SIZES if arguments.part != "texts" else ():
        with tempfile.TemporaryDirectory() as folder:
            write_masks(Path(folder), n_images, side)
            title = f"{n_images} images of {side} x {side}, {N_VOTES} masks each"
            rows += compare(Path(folder), MASKS, arguments.peer, title)
    source = os.environ.get("WISECROWD_ANSWER_TYPES")
    if source is not None and arguments.part != "masks":
        with tempfile.TemporaryDirectory() as folder:
            write_texts(Path(folder), Path(source))
            rows += compare(Path(folder), TEXTS, arguments.peer, f"{N_TEXTS} recordings, 7 transcriptions each")
    report: dict[str, Any] = {"machine": measuring.machine(arguments.peer), "speed": rows}
    if arguments.large:
        report["large"] = measure_large(100_000)
    if arguments.write:
        path = RESULTS / "structured_speed.json"
        if arguments.part is not None:
            stored = json.loads(path.read_text())
            measured = {row["votes"] for row in rows}
            others = [row for row in stored["speed"] if row["votes"] not in measured]
            report = {**stored, f"machine_{arguments.part}": report["machine"], "speed": others + rows}
        path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
