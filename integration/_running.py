"""What these scripts share: an environment for a tool, its servers on loopback, and a verdict.

A script runs in the environment of wisecrowd; the tool has one of its own, which is made in a temporary folder unless
``--venv`` names one that is there already. Nothing listens on any address but 127.0.0.1.
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
    """Where a trial happens, and what came of it."""

    tool: str
    folder: Path
    #: The interpreter that has the tool.
    python: Path
    #: Where exports are kept for the tests, if anywhere.
    record: Path | None
    failed: list[str] = field(default_factory=list)

    def check(self, what: str, ok: bool, otherwise: object = "") -> None:
        """Note whether something is as it should be."""
        print(f"  {'ok  ' if ok else 'FAIL'}  {what}{'' if ok else f': {otherwise}'}", flush=True)
        if not ok:
            self.failed.append(what)

    def run_inside(self, script: str, *arguments: object) -> str:
        """Run a script of ``inside/`` where the tool is installed."""
        command = [str(self.python), str(INSIDE / script), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=offline(), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{script} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def keep(self, file: Path, name: str = "") -> None:
        """Keep an export for the tests, when asked to."""
        if self.record is not None:
            self.record.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, self.record / (name or file.name))

    def version(self, package: str) -> str:
        """The version of a package that the tool consists of."""
        code = f"from importlib.metadata import version; print(version({package!r}))"
        return subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main(tool: str, packages: list[str], trial: Callable[[Trial], None]) -> None:
    """Make an environment, try, clean up, and say how it went by words and exit code."""
    parser = argparse.ArgumentParser(description=f"Try wisecrowd with the real code of {tool}.")
    parser.add_argument("--venv", type=Path, help="an environment that has the tool; else one is made and removed")
    parser.add_argument("--record", action="store_true", help="keep the exports under tests/recorded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=f"wisecrowd-{tool}-") as made:
        folder = Path(made)
        python = _environment(options.venv or folder / "venv", packages)
        work = folder / "work"
        work.mkdir()
        tried = Trial(tool, work, python, RECORDED / tool if options.record else None)
        try:
            os.chdir(work)
            trial(tried)
        except Exception:
            traceback.print_exc()
            tried.failed.append("it did not run to its end")
        finally:
            os.chdir("/")
    print(f"{tool}: {'FAILED: ' + '; '.join(tried.failed) if tried.failed else 'all is well'}")
    sys.exit(bool(tried.failed))


def _environment(folder: Path, packages: list[str]) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {' '.join(packages)}", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
    return python


def offline(**more: str) -> dict[str, str]:
    """The variables of a process that asks nobody outside."""
    quiet = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "*"}
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return {**kept, **quiet, **more}


def free_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def running(command: list[object], folder: Path, env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that ends, with all that it started, when the block does."""
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
    """Ask again until something is there; what raises is not there yet."""
    end, last = time.monotonic() + seconds, "it said no"
    while time.monotonic() < end:
        try:
            if ready():
                return
        except Exception as error:
            last = repr(error)
        time.sleep(0.5)
    raise TimeoutError(f"{what} was not there after {seconds:g} seconds: {last}")
