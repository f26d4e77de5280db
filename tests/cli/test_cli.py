"""The program as a whole: help, exit codes, failures, start-up, and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import wisecrowd as wc
from wisecrowd.cli import COMMANDS, build_app, join_paragraphs

NAMES = [name for names in COMMANDS.values() for name in names]
PROGRAM = [sys.executable, "-c", "from wisecrowd.cli import main; main()"]
HEAVY = ("sklearn", "numba", "torch", "matplotlib")


def program(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "80", "PYTHONWARNINGS": "error"}
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):  # they ask for colours even in a pipe
        environment.pop(name, None)
    return subprocess.run(
        [*PROGRAM, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


# ---------------------------------------------------------------------- what there is


def test_every_file_is_a_listed_command() -> None:
    folder = Path(sys.modules["wisecrowd.cli"].__file__ or "").parent
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert files == set(NAMES), "a new command is a file and an entry in COMMANDS"
    assert len(NAMES) == len(set(NAMES))


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that can be run, by the words that call it."""
    parts = getattr(command, "commands", {})
    if not parts or (command.invoke_without_command and words):
        yield words, command
    for name, part in parts.items():
        yield from leaves(part, (*words, name))


LEAVES = dict(leaves(typer.main.get_command(build_app())))


@pytest.mark.parametrize("words", [(), *LEAVES])
def test_help_teaches_by_example_and_fits(run: Any, words: tuple[str, ...]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert re.search(rf"^ +wisecrowd {' '.join(words)}", result.stdout, re.MULTILINE), "no example"
    assert max(map(len, result.stdout.splitlines())) <= 80
    if words:  # a longer command would be broken in the middle
        commands = [line for line in LEAVES[words].help.splitlines() if line.startswith(" ")]
        assert max(map(len, commands)) <= 78


@pytest.mark.parametrize("width", [50, 120])
def test_prose_of_help_wraps_at_the_width_of_the_terminal(app: typer.Typer, width: int) -> None:
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["aggregate", "--help"], prog_name="wisecrowd")
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert max(map(len, lines)) <= width
    start = next(n for n, line in enumerate(lines) if line.startswith("Writes labels.csv"))
    paragraph = lines[start : lines.index("", start)]
    room = [width - len(line) - 2 for line in paragraph[:-1]]
    first_words = [line.split()[0] for line in paragraph[1:]]
    assert all(space <= len(word) + 1 for space, word in zip(room, first_words, strict=True)), "a line ends early"


def test_paragraphs_are_joined_and_commands_are_not() -> None:
    text = """First line
    of two.

    Then:

      wisecrowd a
      wisecrowd b

    The
    end.
    """
    assert join_paragraphs(text) == "First line of two.\n\nThen:\n\n  wisecrowd a\n  wisecrowd b\n\nThe end."


@pytest.mark.parametrize("words", LEAVES)
def test_examples_in_help_texts_name_what_exists(words: tuple[str, ...]) -> None:
    lines = re.findall(r"^ *wisecrowd (.+?)(?: >> .*)?$", LEAVES[words].help, re.MULTILINE)
    assert lines
    for line in lines:
        said = line.split()
        called = max((leaf for leaf in LEAVES if tuple(said[: len(leaf)]) == leaf), key=len, default=None)
        assert called is not None, f"no command: {line}"
        options = {option for parameter in LEAVES[called].params for option in parameter.opts}
        assert {word for word in said if re.match(r"--?[a-z]", word)} <= options, line


def test_bare_program_prints_help_and_version_is_one(run: Any) -> None:
    assert "Usage: wisecrowd" in run().output
    assert run("--version").stdout == f"wisecrowd {wc.__version__}\n"


def test_an_unknown_command_gets_advice(run: Any) -> None:
    result = run("agregate")
    assert result.exit_code == 2
    assert "aggregate" in result.stderr


# ---------------------------------------------------------------------- what goes wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "wisecrowd.cli.methods.methods = lambda: exec('raise KeyboardInterrupt')",  # Python remembers it until it exits
        "wisecrowd.cli.build_app = lambda _: signal.raise_signal(signal.SIGINT)",
        "typer.core.TyperGroup.make_context = lambda *_, **__: signal.raise_signal(signal.SIGINT)",
        "sys.modules['wisecrowd.cli'] = InterruptedModule('wisecrowd.cli')",
    ],
)
def test_an_interrupted_program_exits_with_130(tmp_path: Path, where: str) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import signal, sys, types\n"
        "import rich.console, rich.style, rich.text, typer.core, wisecrowd.cli.methods\n"
        "wisecrowd.cli._console.print_note('loaded')\n"
        "from wisecrowd.__main__ import main\n"
        "class InterruptedModule(types.ModuleType):\n"
        "    def __getattr__(self, name):\n"
        "        raise KeyboardInterrupt\n"
        f"{where}\n"
        "sys.argv = ['wisecrowd', 'methods']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "loaded\nInterrupted: no file is left half-written.\n")


@pytest.mark.slow
def test_ctrl_c_at_exit_does_not_change_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "import signal, sys\n"
        "from wisecrowd.__main__ import main\n"
        "class Late:\n"
        "    raise_signal, number = signal.raise_signal, signal.SIGINT\n"
        "    def __del__(self):\n"  # when Python clears the modules
        "        Late.raise_signal(Late.number)\n"
        "late = Late()\n"
        "sys.argv = ['wisecrowd', '--version']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "late.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_debug_is_an_option_of_the_program(run: Any) -> None:
    assert "Traceback" not in run("aggregate", "nothing.csv").stderr
    result = run("--debug", "aggregate", "nothing.csv")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


# ---------------------------------------------------------------------- the real program


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from wisecrowd.cli import main\n"
        "sys.argv = ['wisecrowd', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('loaded', *(name for name in {(*HEAVY, 'pandas', 'pyarrow', 'scipy')} if name in sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1].split() == ["loaded"]


@pytest.mark.slow
def test_aggregate_end_to_end_without_heavy_imports(tmp_path: Path) -> None:
    made = wc.simulate_crowd(2000, 60, votes_per_task=5)
    wc.write(made.crowd, tmp_path / "votes.csv")
    (tmp_path / "gold.csv").write_text(made.truth.to_csv(), encoding="utf-8")
    code = (
        "import sys; from wisecrowd.cli import main\n"
        "sys.argv = ['wisecrowd', 'aggregate', 'votes.csv', '--score', 'gold.csv', '-o', 'out', '-q']\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        f"print('loaded', *(name for name in {HEAVY} if name in sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1].split() == ["loaded"]
    assert shown.stderr == ""
    assert json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["input"]["votes"] == 10_000


@pytest.mark.slow
def test_exit_codes_and_plain_output_in_a_pipe(tmp_path: Path, votes: Path) -> None:
    good = program("aggregate", votes.name, "-m", "majority-vote", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert "\x1b" not in good.stdout
    assert not any(line.endswith(" ") for line in good.stdout.splitlines())
    bad = program("aggregate", "absent.csv", cwd=tmp_path)
    assert bad.returncode == 1
    assert bad.stdout == ""
    assert len(bad.stderr.splitlines()) == 1
    assert "\x1b" not in bad.stderr
    assert program("aggregate", votes.name, "--bogus", cwd=tmp_path).returncode == 2


@pytest.mark.slow
def test_ids_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("task,worker,label\nt1,ann,猫\n", encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [*PROGRAM, "aggregate", "v.csv", "-m", "majority-vote", "-o", "out"]
    shown = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "\\u732b" in shown.stdout
    assert "猫" in (tmp_path / "out" / "labels.csv").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    shown = subprocess.run(
        f"'{sys.executable}' -c 'from wisecrowd.cli import main; main()' methods dawid-skene | head -n 1",
        shell=True, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.startswith("dawid-skene")
    assert "Traceback" not in shown.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another thing on Windows")
def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "here", tmp_path / "fit.npz"
    folder.mkdir()
    wc.write(wc.simulate_crowd(3000, 60, 6, votes_per_task=6).crowd, folder / "votes.csv")
    before = sorted(folder.iterdir())
    endless = ["-p", "max_iter=1000000000", "-p", "tol=-1", "-p", f"checkpoint={checkpoint}"]
    running = subprocess.Popen(
        [*PROGRAM, "aggregate", "votes.csv", *endless, "-o", "out", "--proba", "--save"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not checkpoint.exists():  # written by the first iterations: the fit has begun
            assert running.poll() is None, running.communicate()
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode == 130
    assert out == ""
    assert err == "Interrupted: no file is left half-written.\n"
    assert sorted(folder.iterdir()) == before
