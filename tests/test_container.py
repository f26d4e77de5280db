"""The container: its files fit the program, and the service runs without rights on a root file system that is read-only."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from wisecrowd.cli import build_app

ROOT = Path(__file__).parents[1]
INSTRUCTIONS = {
    "FROM", "RUN", "CMD", "LABEL", "EXPOSE", "ENV", "COPY", "ENTRYPOINT", "VOLUME", "USER", "WORKDIR", "STOPSIGNAL",
    "HEALTHCHECK",
}  # fmt: skip


def read_dockerfile() -> list[tuple[str, str]]:
    """Return the instructions with their arguments."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    found = []
    for line in filter(str.strip, lines):
        instruction, _, rest = line.partition(" ")
        assert instruction in INSTRUCTIONS, line
        found.append((instruction, rest.strip()))
    return found


def check_command(words: list[str]) -> None:
    """Check that the program takes a command line, without running it."""
    command: Any = get_command(build_app([words[0]]))
    command.commands[words[0]].make_context(words[0], words[1:], resilient_parsing=False)


def last(instruction: str) -> str:
    return [rest for name, rest in read_dockerfile() if name == instruction][-1]


def test_the_image_runs_the_service_as_a_user_without_rights() -> None:
    assert last("USER") == "10001:10001"
    assert json.loads(last("ENTRYPOINT")) == ["wisecrowd"]
    check_command(json.loads(last("CMD")))
    assert last("STOPSIGNAL") == "SIGTERM"
    after_user = read_dockerfile()[[name for name, _ in read_dockerfile()].index("USER") :]
    assert {name for name, _ in after_user}.isdisjoint({"RUN", "COPY"}), "nothing belongs to the user but /data"


def test_the_health_check_is_a_program_that_asks_the_service() -> None:
    health = last("HEALTHCHECK")
    words = json.loads(health[health.index("[") :])
    assert words[:2] == ["python", "-c"]
    compile(words[2], "health check", "exec")
    assert "127.0.0.1:8765/health" in words[2]


def test_copied_files_exist_and_are_not_ignored() -> None:
    wanted = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    for name, rest in read_dockerfile():
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in wanted, f"{source} is ignored"


def test_the_composition_parses_and_is_closed() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    service, database = services["wisecrowd"], services["database"]
    check_command(service["command"])
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"]), (
        "only this machine, until a proxy is in front"
    )
    assert "ports" not in database
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert database["healthcheck"]["test"][0] == "CMD"
    secrets = [*service["environment"].values(), database["environment"]["POSTGRES_PASSWORD"]]
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets), "no secret has a default"
    assert not any(
        "PASSWORD" in word or ":" in word.partition("://")[2].partition("@")[0] for word in service["command"]
    )


@pytest.mark.slow
def test_the_service_needs_no_other_writable_folder(tmp_path: Path) -> None:
    """Run the command of the image in a mount namespace with a read-only root, as the user of the image."""
    programs = {name: shutil.which(name) for name in ("unshare", "mount", "setpriv")}
    if None in programs.values() or os.geteuid() != 0:
        pytest.skip("only root may mount, with unshare, mount and setpriv")
    data = tmp_path / "data"
    data.mkdir()
    # The interpreter may be in the home of root, which the user of the image cannot enter.
    home, prefix = str(Path.home()), sys.base_prefix
    expose = (
        f"mount --bind {prefix} /media; mount -t tmpfs tmpfs {home}; mkdir -p {prefix}; mount --bind /media {prefix}"
        if prefix.startswith(home)
        else ""
    )
    prepare = f"""
set -e
mount --bind {data} /mnt
{expose}
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -o remount,ro,bind /
chown 10001:10001 /mnt
cd /mnt
export WISECROWD_TOKEN=a-token-of-sixteen-or-more XDG_CACHE_HOME=/mnt/.cache PYTHONDONTWRITEBYTECODE=1 HOME=/nonexistent
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all {sys.executable} -c """
    attempt = _run_isolated(prepare + "'import numpy, wisecrowd'")
    if attempt.returncode != 0:
        reason = attempt.stderr.strip().splitlines()[-1:]
        pytest.skip(f"this machine does not let another user run Python in a mount namespace: {reason}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = f"""'
import json, os, signal, subprocess, sys, time, urllib.request
assert os.geteuid() == 10001
try:
    open("/etc/written", "w")
    raise SystemExit("the root file system is writable")
except OSError:
    pass
arguments = ["/mnt/votes.db", "--port", "{port}", "--log-format", "json"]
service = subprocess.Popen([sys.executable, "-m", "wisecrowd", "serve", *arguments])
for _ in range(600):
    assert service.poll() is None
    try:
        urllib.request.urlopen("http://127.0.0.1:{port}/health", timeout=4)
        break
    except OSError:
        time.sleep(0.1)
def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    header = {{"Authorization": "Bearer " + os.environ["WISECROWD_TOKEN"]}}
    with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:{port}" + path, data, header), timeout=60) as answer:
        return json.load(answer)
ask("/votes", [{{"task": str(n // 3), "worker": "w" + str(n % 3), "label": "xy"[n % 2]}} for n in range(60)])
assert ask("/refit", {{}})["is_current"]
service.send_signal(signal.SIGTERM)
assert service.wait(60) == 0
'
"""
    done = _run_isolated(prepare + program)
    assert done.returncode == 0, done.stderr
    assert (data / "votes.db").exists()


def _run_isolated(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a mount namespace of its own."""
    command = ["unshare", "--mount", "bash", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
