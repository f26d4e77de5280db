"""Install the wheel into empty environments, without extras and with every extra by itself, and use what the extra is for.

    python .ci/install_extras.py                  # all extras
    python .ci/install_extras.py serve postgres   # some of them; base stands for none

Versions are those of constraints.txt. Every environment is deleted when its check has ended. The exit code is 1 if a check fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Name of the environment without extras, in which the advice of an error is followed.
BASE = "base"
#: Extras for people who change wisecrowd; they contain the others.
LEFT_OUT = ("all", "dev", "docs")
#: Commands with which every environment begins.
FIRST = """
wisecrowd --version
wisecrowd simulate -o votes.csv --tasks 60 --workers 8
wisecrowd check votes.csv
wisecrowd aggregate votes.csv -o results
"""
#: Program for what each extra is for. A line is a shell command; ``!`` inverts its result.
CHECKS = {
    BASE: """
        ! wisecrowd report votes.csv --no-compare 2> message
        grep -q 'pip install "wisecrowd\\[report\\]"' message
        python -m pip install -q -c "$CONSTRAINTS" "wisecrowd[report]"
        wisecrowd report votes.csv --no-compare
    """,
    "fast": """
        python -c "from wisecrowd.kernels import compiled"
        wisecrowd aggregate votes.csv -o again
    """,
    "datasets": """
        python -c "import pooch"
        wisecrowd datasets
    """,
    "learn": """
        python "$CHECK_LEARN"
        wisecrowd learn votes.csv --features X.npz -m crowd-layer -p epochs=2 -o learned
    """,
    "report": "wisecrowd report votes.csv --no-compare",
    "plot": """
        python "$CHECK_PLOT"
        test -s map.png
    """,
    "cluster": """
        wisecrowd shard votes.csv -o crowd
        wisecrowd aggregate crowd -o sharded --engine ray
    """,
    "tools": """
        ! LABEL_STUDIO_API_KEY=0000000000 wisecrowd label-studio pull --url http://127.0.0.1:9 --project 1 -o x.json 2> message
        ! grep -q "pip install" message
    """,
    "excel": """
        python "$CHECK_EXCEL"
        wisecrowd check v.xlsx
    """,
    "remote": """
        python -c "import fsspec, wisecrowd as wc; fsspec.filesystem('memory').put('votes.csv', '/v.csv'); wc.read('memory://v.csv')"
        ! wisecrowd check s3://bucket/votes.csv 2> message
        grep -q "pip install s3fs" message
    """,
    "serve": """
        python "$CHECK_SERVE"
        wisecrowd database check votes.db
    """,
    "postgres": """
        python -c "from wisecrowd.service.database import connect; connect('postgresql://me@127.0.0.1:9/votes')"
    """,
}  # fmt: skip
LEARN = """
import numpy as np, wisecrowd as wc
crowd = wc.read("votes.csv")
np.savez("X.npz", task=np.asarray(crowd.tasks, dtype=str), X=np.random.default_rng(0).normal(size=(crowd.n_tasks, 3)))
"""
EXCEL = """
import openpyxl
book = openpyxl.Workbook()
for row in (["task", "worker", "label"], [1, "ann", "cat"], [1, "bob", "cat"]):
    book.active.append(row)
book.save("v.xlsx")
"""
PLOT = """
import wisecrowd as wc
from wisecrowd import plot
plot.worker_map(wc.diagnose_crowd(wc.read("votes.csv"))).figure.savefig("map.png")
"""
SERVE = """
import json, os, signal, subprocess, time, urllib.request
token = "a-token-of-sixteen-or-more"
port = "18765"
command = ["wisecrowd", "serve", "votes.db", "--port", port, "--from", "votes.csv"]
service = subprocess.Popen(command, env={**os.environ, "WISECROWD_TOKEN": token})
try:
    for _ in range(600):
        assert service.poll() is None, "the service did not start"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
            break
        except OSError:
            time.sleep(0.1)
    header = {"Authorization": f"Bearer {token}"}
    page = urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/consensus", headers=header))
    assert json.load(page)["total"] == 60
finally:
    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0, "the service did not end"
command = ["wisecrowd", "review", "votes.csv", "--port", port, "--limit", "3"]
review = subprocess.Popen(command, env={**os.environ, "WISECROWD_TOKEN": token}, stderr=subprocess.PIPE, text=True)
try:
    assert any("Open http" in line for line in review.stderr), "the review did not start"
    page = urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/", headers=header)).read()
    assert b"What is the true label?" in page
finally:
    review.send_signal(signal.SIGTERM)
    assert review.wait(60) == 0, "the review did not end"
"""


def list_extras() -> list[str]:
    """Return the extras that are checked by themselves."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [extra for extra in project["optional-dependencies"] if extra not in LEFT_OUT]


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the sources."""
    ignored = shutil.ignore_patterns(".*", "benchmarks", "tests", "*.egg-info", "site", "build")
    sources = shutil.copytree(ROOT, folder / "sources", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, sources]
    subprocess.run(command, check=True)
    [wheel] = folder.glob("wisecrowd-*.whl")
    return wheel


def check_extra(extra: str, wheel: Path) -> str:
    """Install an extra into a new environment and use it; return a line about the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        for file, program in (("learn.py", LEARN), ("plot.py", PLOT), ("excel.py", EXCEL), ("serve.py", SERVE)):
            (folder / file).write_text(program, encoding="utf-8")
        (folder / "work").mkdir()
        constraints = str(ROOT / "constraints.txt")
        # Nothing of this environment may help: neither its packages nor the sources.
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "WISECROWD"))}
        environment |= {
            "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}", "CONSTRAINTS": constraints,
            "CHECK_LEARN": str(folder / "learn.py"), "CHECK_PLOT": str(folder / "plot.py"), "CHECK_SERVE": str(folder / "serve.py"),
            "CHECK_EXCEL": str(folder / "excel.py"),
        }  # fmt: skip
        requirement = str(wheel) if extra == BASE else f"{wheel}[{extra}]"
        started_at = time.perf_counter()
        install = ["python", "-m", "pip", "install", "-q", "-c", constraints, requirement]
        subprocess.run(install, check=True, env=environment, cwd=folder / "work")
        seconds = time.perf_counter() - started_at
        size = sum(path.stat().st_size for path in (folder / "venv").rglob("*") if path.is_file())
        lines = [line.strip() for line in (FIRST + CHECKS[extra]).strip().splitlines() if line.strip()]
        for line in lines:
            inverted = line.startswith("! ")
            done = subprocess.run(
                ["bash", "-c", line.removeprefix("! ")], env=environment, cwd=folder / "work", capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            if (done.returncode == 0) == inverted:
                return f"{extra}: FAILED: {line}\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
        return f"{extra}: ok, {len(lines)} commands, installed in {seconds:.0f} s, {size / 1e6:,.0f} MB"


def main() -> None:
    """Check the extras that the command line names, or all."""
    extras = sys.argv[1:] or [BASE, *list_extras()]
    unknown = [extra for extra in extras if extra not in CHECKS]
    if unknown:
        raise SystemExit(f"no check for {', '.join(unknown)}; add one to CHECKS in {Path(__file__).name}")
    with tempfile.TemporaryDirectory() as name:
        wheel = build_wheel(Path(name))
        failed = False
        for extra in extras:
            line = check_extra(extra, wheel)
            failed = failed or "FAILED" in line
            print(line, flush=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
