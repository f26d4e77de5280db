"""Fill a small disk by a checkpoint, by labels and by shards: ``scale_full_disk.py CROWD SCRATCH``; needs the right to mount one.

Prints as JSON a row for each: how it ended, what it said, and whether anything half-written is left that looks whole.
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


def ran(*words: object, place: Path) -> tuple[int, str, str]:
    """How a program ended, what it printed, and what it said on standard error, in one line, without where the disk is."""
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split()).replace(str(place), "small")
    return done.returncode, done.stdout, said[max(said.find("DataWarning:"), 0) :].partition(" checkpoint.write")[0]


def files(place: Path) -> list[str]:
    return sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())


def checkpoint(crowd: Path, scratch: Path, small: Path) -> dict[str, Any]:
    """The fit goes on without, to the same result."""
    digests = []
    for place in (scratch, small):
        result = scratch / "full-disk.json"
        code, _, said = ran(PROGRAMS / "scale_victim.py", crowd, "local", 20, place / "here.npz", result, place=small)
        digests.append(json.loads(result.read_text())["sha256"] if code == 0 else said)
        result.unlink(missing_ok=True)
    (scratch / "here.npz").unlink(missing_ok=True)
    good = digests[0] == digests[1] and "could not be kept" in said and not files(small)
    return {"ended": "goes on, same result" if digests[0] == digests[1] else "otherwise", "said": said, "good": good}


def labels(crowd: Path, _: Path, small: Path) -> dict[str, Any]:
    """The command says where there is no room, and leaves nothing that looks like labels."""
    code, _, said = ran(
        "-m", "wisecrowd", "aggregate", crowd, "-m", "majority-vote", "-o", small / "results", "-q", place=small
    )
    left = [name for name in files(small) if name.endswith("labels.parquet")]
    good = code != 0 and not left and "Traceback" not in said and "is full" in said and "labels.parquet" in said
    return {"ended": f"exit code {code}", "said": said, "left": files(small), "good": good}


def shards(_: Path, scratch: Path, small: Path) -> dict[str, Any]:
    """The command says what is needed; with more room, it goes on to the same shards."""
    votes = scratch / "made" / "votes.parquet"
    subprocess.run(
        [sys.executable, PROGRAMS.parent / "crowds.py", votes.parent, "300000", "2000", "5"],
        check=True,
        capture_output=True,
    )
    command = ("-m", "wisecrowd", "shard", votes, "--votes-per-shard", 50_000, "--json", "-o")
    whole = json.loads(ran(*command, scratch / "whole", place=small)[1])["sha256"]
    code, _, said = ran(*command, small / "crowd", place=small)
    opens = (small / "crowd" / "crowd.json").exists()
    subprocess.run(["mount", "-o", f"remount,size={200 * KB * KB}", small], check=True)
    again, told, more = ran(*command, small / "crowd", place=small)
    same = again == 0 and json.loads(told)["sha256"] == whole
    good = code != 0 and not opens and "full" in said and "Traceback" not in said and same
    ended = f"exit code {code}; with room, {'goes on to the same shards' if same else more}"
    return {"ended": ended, "said": said, "good": good}


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
