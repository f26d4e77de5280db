"""Fill a small disk with a checkpoint, labels and shards: ``scale_full_disk.py CROWD SCRATCH``; needs permission to mount it.

Prints a row for each as JSON: exit code, message, and whether a partial file remains that looks complete.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent
KB = 1024


@contextmanager
def disk(place: Path, size: int) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)
        place.rmdir()


def run_program(*words: object, place: Path) -> tuple[int, str, str]:
    """Run a program and return its exit code, its output, and its messages in one line without the path of the disk."""
    process = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
    message = " ".join(process.stderr.split()).replace(str(place), "small")
    return (
        process.returncode,
        process.stdout,
        message[max(message.find("DataWarning:"), 0) :].partition(" checkpoint.write")[0],
    )


def files(place: Path) -> list[str]:
    return sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())


def checkpoint(crowd: Path, scratch: Path, small: Path) -> dict[str, Any]:
    """Check that a fit continues without a checkpoint to the same result."""
    digests = []
    for place in (scratch, small):
        result = scratch / "full-disk.json"
        code, _, message = run_program(
            PROGRAMS / "scale_victim.py", crowd, "local", 20, place / "here.npz", result, place=small
        )
        digests.append(json.loads(result.read_text())["sha256"] if code == 0 else message)
        result.unlink(missing_ok=True)
    (scratch / "here.npz").unlink(missing_ok=True)
    good = digests[0] == digests[1] and "could not be kept" in message and not files(small)
    return {"ended": "goes on, same result" if digests[0] == digests[1] else "otherwise", "said": message, "good": good}


def labels(crowd: Path, _: Path, small: Path) -> dict[str, Any]:
    """Check that the command names the full disk and leaves no file that looks like labels."""
    code, _, message = run_program(
        "-m", "wisecrowd", "aggregate", crowd, "-m", "majority-vote", "-o", small / "results", "-q", place=small
    )
    partial_files = [name for name in files(small) if name.endswith("labels.parquet")]
    good = (
        code != 0
        and not partial_files
        and "Traceback" not in message
        and "is full" in message
        and "labels.parquet" in message
    )
    return {"ended": f"exit code {code}", "said": message, "left": files(small), "good": good}


def shards(_: Path, scratch: Path, small: Path) -> dict[str, Any]:
    """Check that the command reports the full disk, and that it continues to the same shards once there is space."""
    votes = scratch / "made" / "votes.parquet"
    subprocess.run(
        [sys.executable, PROGRAMS.parent / "crowds.py", votes.parent, "300000", "2000", "5"],
        check=True,
        capture_output=True,
    )
    command = ("-m", "wisecrowd", "shard", votes, "--votes-per-shard", 50_000, "--json", "-o")
    whole = json.loads(run_program(*command, scratch / "whole", place=small)[1])["sha256"]
    code, _, message = run_program(*command, small / "crowd", place=small)
    opens = (small / "crowd" / "crowd.json").exists()
    subprocess.run(["mount", "-o", f"remount,size={200 * KB * KB}", small], check=True)
    again, printed, more = run_program(*command, small / "crowd", place=small)
    same = again == 0 and json.loads(printed)["sha256"] == whole
    good = code != 0 and not opens and "full" in message and "Traceback" not in message and same
    ended = f"exit code {code}; with room, {'goes on to the same shards' if same else more}"
    return {"ended": ended, "said": message, "good": good}


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as scratch:
        print(json.dumps({"rows": all_of(Path(sys.argv[1]), Path(scratch))}))


def all_of(crowd: Path, scratch: Path) -> list[dict[str, Any]]:
    parts = {"a checkpoint": (checkpoint, 100 * KB), "labels": (labels, 100 * KB), "shards": (shards, 3 * KB * KB)}
    rows = []
    for what, (part, size) in parts.items():
        try:
            with disk(scratch / "small", size) as small:
                rows.append({"what": what, **part(crowd, scratch, small)})
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            reason = getattr(error, "stderr", None) or str(error)
            rows.append(
                {"what": what, "ended": "skipped", "said": reason if isinstance(reason, str) else reason.decode()}
            )
    return rows


main()
