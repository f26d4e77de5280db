"""Shared parts of the scripts: an environment for a tool, its servers on loopback, and the result of a trial.

A script runs in the environment of wisecrowd; the tool has one of its own, which is created in a temporary folder unless
``--venv`` names an existing one. Servers listen on 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

INSIDE = Path(__file__).resolve().parent / "inside"
RECORDED = Path(__file__).resolve().parent.parent / "tests" / "recorded"


@dataclass
class Trial:
    """Folders, interpreter and failed checks of a trial."""

    tool: str
    folder: Path
    #: Interpreter of the environment with the tool.
    python: Path
    #: Folder in which exports are stored for the tests, if any.
    record: Path | None
    failed: list[str] = field(default_factory=list)
    n_checks: int = 0

    def check(self, what: str, ok: bool, otherwise: object = "") -> None:
        """Print the result of a check, and remember a failed one."""
        self.n_checks += 1
        print(f"  {'ok  ' if ok else 'FAIL'}  {what}{'' if ok else f': {otherwise}'}", flush=True)
        if not ok:
            self.failed.append(what)

    def run_inside(self, script: str, *arguments: object) -> str:
        """Run a script of ``inside/`` in the environment of the tool."""
        command = [str(self.python), str(INSIDE / script), *map(str, arguments)]
        process = subprocess.run(command, cwd=self.folder, env=offline(), capture_output=True, text=True)
        if process.returncode:
            raise RuntimeError(f"{script} failed:\n{process.stdout[-2000:]}\n{process.stderr[-4000:]}")
        return process.stdout

    def keep(self, file: Path, name: str = "") -> None:
        """Store an export for the tests if ``--record`` is set."""
        if self.record is not None:
            self.record.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, self.record / (name or file.name))

    def version(self, package: str) -> str:
        """Return the version of a package of the tool."""
        code = f"from importlib.metadata import version; print(version({package!r}))"
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main(tool: str, packages: list[str], run_trial: Callable[[Trial], None]) -> None:
    """Create an environment, run the trial, clean up, and report the result by text and exit code."""
    parser = argparse.ArgumentParser(description=f"Try wisecrowd with the real code of {tool}.")
    parser.add_argument("--venv", type=Path, help="environment with the tool; by default one is created and removed")
    parser.add_argument("--record", action="store_true", help="store the exports under tests/recorded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=f"wisecrowd-{tool}-") as name:
        folder = Path(name)
        python = _environment(options.venv or folder / "venv", packages)
        work = folder / "work"
        work.mkdir()
        context = Trial(tool, work, python, RECORDED / tool if options.record else None)
        try:
            os.chdir(work)
            run_trial(context)
        except Exception:
            traceback.print_exc()
            context.failed.append("an error ended the trial")
        finally:
            os.chdir("/")
    print(f"{tool}: {'FAILED: ' + '; '.join(context.failed) if context.failed else 'all checks passed'}")
    sys.exit(bool(context.failed))


def _environment(folder: Path, packages: list[str]) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {' '.join(packages)}", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
    return python


def offline(**more: str) -> dict[str, str]:
    """Return environment variables for a process without network access."""
    quiet = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "*"}
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return {**environment, **quiet, **more}


def free_port() -> int:
    """Return a free port of loopback."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def run_server(
    command: list[object], folder: Path, env: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server inside a block; stop it and its children at the end."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [str(part) for part in command], cwd=folder, env=env, stdout=file, stderr=file, start_new_session=True
        )
        try:
            yield process
        finally:
            for how in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=15)
                    break


def wait_until(ready: Callable[[], bool], what: str, seconds: float = 120) -> None:
    """Wait until a condition holds; an exception counts as not yet."""
    end, last = time.monotonic() + seconds, "the condition is false"
    while time.monotonic() < end:
        try:
            if ready():
                return
        except Exception as error:
            last = repr(error)
        time.sleep(0.5)
    raise TimeoutError(f"{what} was not ready after {seconds:g} seconds: {last}")
