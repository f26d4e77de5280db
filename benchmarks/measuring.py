"""Run programs in turn, each in a process of its own, and describe the machine. Standard library only.

The measuring process stays small on purpose: a child inherits its parent's peak memory on Linux.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEER = "crowd-kit"


def run(command: list[str], **environment: str) -> dict[str, Any]:
    """Run a program and return its last line of JSON, or else its running time."""
    started = time.time()
    process = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment, "BEGUN": str(started)}
    )
    wall = time.time() - started
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{process.stderr}")
    lines = process.stdout.strip().splitlines()
    figures: dict[str, Any] = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {"wall": wall}
    return figures


def python(program: str, *arguments: object, interpreter: str = sys.executable) -> list[str]:
    """Return the command that runs one of our programs."""
    return [interpreter, str(HERE / program), *map(str, arguments)]


def in_turns(commands: dict[str, list[str]], repeats: int, **environment: str) -> dict[str, dict[str, Any]]:
    """Run the commands in turns and return the median of every reported number."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(run(command, **environment))
    return {name: {key: statistics.median(r[key] for r in rows) for key in rows[0]} for name, rows in runs.items()}


def peer_python(interpreter_path: str | None) -> str:
    """Return an interpreter with crowd-kit, in a new environment if none is given."""
    if interpreter_path:
        return interpreter_path
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wisecrowd-benchmarks"
    interpreter = cache / PEER / "bin" / "python"
    if not interpreter.exists():
        print(f"Making an environment for {PEER}; once", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(cache / PEER)], check=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "-q", PEER, "pyarrow"], check=True)
    return str(interpreter)


def machine(
    peer: str | None = None, names: tuple[str, ...] = ("numpy", "scipy", "pandas", "pyarrow", "numba")
) -> dict[str, str]:
    """Describe the hardware and the versions."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        processor = models[0].split(":", 1)[1].strip() if models else processor
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    versions = [f"{name} {version(name)}" for name in ("wisecrowd", *names)]
    if peer is not None:
        code = f"import importlib.metadata as m; print(m.version({PEER!r}))"
        peer_version = subprocess.run([peer, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        versions.append(f"{PEER} {peer_version}")
        compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout
        system += f", {compiler.splitlines()[0]}"
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB",
        "system": system,
        "versions": ", ".join(versions),
    }
