"""Runner of fuzz cases: worker processes with limits, one outcome per case, and files of bad cases for a replay.

A module of targets defines ``TARGETS``, a sequence of `Target`, and ends with::

    if __name__ == "__main__":
        runner.main(__spec__.name)

Case n of a seed belongs to target n modulo the number of targets. Its random generator depends on the seed, the name of the
target and n only, so ``python -m tests.fuzz.readers --seed 7 --case 123`` repeats it alone.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import faulthandler
import importlib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.errors import WisecrowdError

#: Processor seconds of a case. Processor time, because a busy machine would make harmless cases look like hangs.
MAX_SECONDS = 10.0
#: Seconds on the clock of a case, for cases that wait without computing.
MAX_WALL_SECONDS = 300.0
#: Peak of resident memory of a case, with the modules of the process.
MAX_PEAK_BYTES = 2 << 30
#: Address space of a worker process. Larger than the memory limit, because libraries reserve space that they do not use.
MAX_ADDRESS_SPACE_BYTES = 6 << 30
#: Cases after which a worker process is replaced, so that leaks of libraries do not add up.
CASES_PER_PROCESS = 400
#: Peak of memory after which a worker process is replaced, because allocators keep what they had.
MAX_REUSED_PEAK_BYTES = 1 << 30
#: Longest message of a refusal. A longer one repeats the content of the file.
MAX_MESSAGE_CHARACTERS = 2000

OK, REFUSED, TRACEBACK, SIGNAL, HANG, MEMORY = "ok", "refused", "traceback", "signal", "hang", "memory"
#: All outcomes. The first two are good.
OUTCOMES = (OK, REFUSED, TRACEBACK, SIGNAL, HANG, MEMORY)
BAD_OUTCOMES = (TRACEBACK, SIGNAL, HANG, MEMORY)


class TooSlow(Exception):
    """A part of a case that takes longer than it may, raised by targets with several parts."""


@dataclasses.dataclass(frozen=True)
class Target:
    """Something that reads hostile input.

    Parameters
    ----------
    name : str
        Name, without blanks.
    prepare : callable
        Function of an empty folder and a random generator that writes the hostile files of a case into the folder. It returns
        a description of what it changed.
    run : callable
        Function of that folder that reads the files. It raises one of ``refusals``, or nothing.
    refusals : tuple of type, default=(WisecrowdError,)
        Exceptions that are clear refusals.
    max_seconds : float, default=10
        Processor time of a case.
    """

    name: str
    prepare: Callable[[Path, np.random.Generator], str]
    run: Callable[[Path], object]
    refusals: tuple[type[BaseException], ...] = (WisecrowdError,)
    max_seconds: float = MAX_SECONDS


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of one case.

    Parameters
    ----------
    target : str
        Name of the target.
    case : int
        Number of the case.
    kind : str
        One of `OUTCOMES`.
    change : str
        What was changed.
    message : str
        Error, or an empty string.
    place : str
        File and function of wisecrowd where an exception was raised.
    details : str
        Traceback of a bad outcome.
    seconds : float
        Processor time.
    peak_bytes : int
        Peak of resident memory.
    """

    target: str
    case: int
    kind: str
    change: str = ""
    message: str = ""
    place: str = ""
    details: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0

    @property
    def is_bad(self) -> bool:
        """True if the case is a finding."""
        return self.kind in BAD_OUTCOMES


def load_targets(module: str) -> Sequence[Target]:
    """Return the targets of a module.

    Parameters
    ----------
    module : str
        Dotted name.

    Returns
    -------
    sequence of Target
    """
    targets: Sequence[Target] = importlib.import_module(module).TARGETS
    return targets


def make_rng(target: Target, seed: int, case: int) -> np.random.Generator:
    """Return the random generator of a case.

    Parameters
    ----------
    target : Target
        Target of the case.
    seed, case : int
        Seed of the run and number of the case.

    Returns
    -------
    numpy.random.Generator
    """
    return np.random.default_rng([seed, zlib.crc32(target.name.encode()), case])


# ---------------------------------------------------------------------- one case


def run_case(target: Target, folder: Path, seed: int, case: int) -> Outcome:
    """Run one case in this process, without limits on time.

    Parameters
    ----------
    target : Target
        Target of the case.
    folder : Path
        Empty folder for its files.
    seed, case : int
        Seed of the run and number of the case.

    Returns
    -------
    Outcome
    """
    change, begin = target.prepare(folder, make_rng(target, seed, case)), time.process_time()
    _reset_peak()
    kind, message, place, details = OK, "", "", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(folder)
    except target.refusals as error:
        kind, message, place = REFUSED, str(error), _find_place(error)
        if not message or len(message) > 20 * MAX_MESSAGE_CHARACTERS:
            kind, details = TRACEBACK, f"the message has {len(message):,} characters\n{message[:1000]}"
    except TooSlow as error:
        kind, message, place = HANG, str(error), target.name
    except MemoryError as error:
        kind, message, place, details = MEMORY, _describe(error), _find_place(error), _format(error)
    except (Exception, SystemExit) as error:
        kind, message, place, details = TRACEBACK, _describe(error), _find_place(error), _format(error)
    seconds, peak = time.process_time() - begin, _get_peak()
    if kind in (OK, REFUSED) and peak > MAX_PEAK_BYTES:
        kind, message, place = (
            MEMORY,
            f"{peak / 2**30:.1f} GB; {message}"[:MAX_MESSAGE_CHARACTERS],
            place or target.name,
        )
    if kind in (OK, REFUSED) and seconds > target.max_seconds:
        kind, message, place = HANG, f"{seconds:.0f} s; {message}"[:MAX_MESSAGE_CHARACTERS], place or target.name
    message = message[:MAX_MESSAGE_CHARACTERS]
    return Outcome(target.name, case, kind, change, message, place, details, round(seconds, 3), peak)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_MESSAGE_CHARACTERS]


def _format(error: BaseException) -> str:
    text = "".join(traceback.format_exception(error, limit=-40))
    return text if len(text) < 20_000 else f"{text[:10_000]}\n…\n{text[-10_000:]}"


def _find_place(error: BaseException) -> str:
    """Return the innermost function of wisecrowd in the traceback of an error, or the innermost one at all."""
    place = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if "/wisecrowd/" in file:
            place = f"{file.rpartition('/wisecrowd/')[2]}:{name}"
        elif not place:
            place = f"{Path(file).name}:{name}"
    return place


def _reset_peak() -> None:
    """Reset the measured peak of memory if the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _get_peak() -> int:
    with contextlib.suppress(OSError, AttributeError):
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# ---------------------------------------------------------------------- worker processes


def _serve(module: str, seed: int, folder: str, pipe: Connection, log: str) -> None:
    """Run the cases whose numbers arrive, until None does. The main function of a worker process."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):  # also what libraries print when they abort
        os.dup2(descriptor, stream)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE_BYTES, MAX_ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    targets = load_targets(module)
    pipe.send(None)  # ready
    while (case := pipe.recv()) is not None:
        target, case_folder = targets[case % len(targets)], Path(folder) / str(case)
        case_folder.mkdir()
        os.chdir(case_folder)  # so that nothing is left elsewhere
        pipe.send(run_case(target, case_folder, seed, case))


@dataclasses.dataclass
class _Worker:
    """Process that runs one case after the other."""

    process: Any
    pipe: Connection
    log: Path
    case: int | None = None
    n_cases: int = 0
    is_ready: bool = False
    started: float = 0.0
    started_processor: float = 0.0

    @classmethod
    def start(cls, module: str, seed: int, folder: Path, number: int) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        log = folder / f"worker-{number}.log"
        log.write_bytes(b"")
        process = context.Process(target=_serve, args=(module, seed, str(folder), theirs, str(log)), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours, log)

    def submit(self, case: int) -> None:
        self.case, self.started, self.started_processor = case, time.monotonic(), self.processor_seconds()
        self.n_cases += 1
        self.log.write_bytes(b"")
        self.pipe.send(case)

    def processor_seconds(self) -> float:
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()  # not Linux: time on the clock
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_late(self, max_seconds: float) -> bool:
        # Preparing the files counts here and not in the outcome, so there is some leeway.
        return (
            self.processor_seconds() - self.started_processor > max_seconds + 5
            or time.monotonic() - self.started > MAX_WALL_SECONDS
        )

    def can_continue(self, outcome: Outcome) -> bool:
        return (
            outcome.kind not in (SIGNAL, HANG, MEMORY)
            and outcome.peak_bytes < MAX_REUSED_PEAK_BYTES
            and self.n_cases < CASES_PER_PROCESS
            and self.process.is_alive()
        )

    def stop(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.pipe.close()


def run_cases(
    module: str, seed: int, cases: Iterable[int], *, n_jobs: int = 2, keep: Path | None = None
) -> Iterator[Outcome]:
    """Run cases in worker processes with limits on time and memory.

    Parameters
    ----------
    module : str
        Dotted name of a module with ``TARGETS``.
    seed : int
        Seed of the run.
    cases : iterable of int
        Numbers of the cases.
    n_jobs : int, default=2
        Number of processes.
    keep : Path, optional
        Folder for the files of bad cases.

    Yields
    ------
    Outcome
        Outcomes in the order in which they finish.
    """
    targets = load_targets(module)
    queue = iter(cases)
    with tempfile.TemporaryDirectory(prefix="wisecrowd-fuzz-") as temporary:
        folder, workers, n_started = Path(temporary), list[_Worker](), 0
        try:
            while True:
                while len(workers) < n_jobs and (case := next(queue, None)) is not None:
                    worker = _Worker.start(module, seed, folder, n_started)
                    n_started += 1
                    worker.pipe.recv()
                    workers.append(worker)
                    worker.submit(case)
                if not workers:
                    return
                wait([worker.pipe for worker in workers] + [worker.process.sentinel for worker in workers], timeout=0.5)
                for worker in list(workers):
                    outcome = _receive(worker, targets)
                    if outcome is None:
                        continue
                    case_folder = folder / str(outcome.case)
                    if outcome.is_bad and keep is not None:
                        _keep_case(keep, case_folder, outcome, module, seed)
                    shutil.rmtree(case_folder, ignore_errors=True)
                    worker.case = None
                    next_case = next(queue, None) if worker.can_continue(outcome) else None
                    if next_case is not None:
                        worker.submit(next_case)
                    else:
                        worker.stop()
                        workers.remove(worker)
                    yield outcome
        finally:
            for worker in workers:
                worker.stop()


def _receive(worker: _Worker, targets: Sequence[Target]) -> Outcome | None:
    """Return the outcome of a worker's case if it ended, was killed or takes too long."""
    assert worker.case is not None
    target = targets[worker.case % len(targets)]
    name = target.name
    try:
        if worker.pipe.poll():
            outcome: Outcome = worker.pipe.recv()
            return outcome
    except EOFError:  # the process died
        worker.process.join()
    if not worker.process.is_alive():
        code = worker.process.exitcode
        reason = signal.Signals(-code).name if code and code < 0 else f"exit code {code}"
        return _from_log(worker, name, SIGNAL, f"the process ended: {reason}")
    if worker.is_late(target.max_seconds):
        seconds = worker.processor_seconds() - worker.started_processor
        message = f"{seconds:.0f} s of processor time, {time.monotonic() - worker.started:.0f} s on the clock"
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.process.pid, signal.SIGUSR1)  # it writes where it hangs
        time.sleep(0.5)
        return _from_log(worker, name, HANG, message)
    return None


def _from_log(worker: _Worker, name: str, kind: str, message: str) -> Outcome:
    assert worker.case is not None
    details = worker.log.read_text(errors="replace")[-20_000:]
    frames = re.findall(r'File ".*?/wisecrowd/(\S+)", line \d+ in (\S+)', details)
    place = ":".join(frames[0]) if frames else ""
    return Outcome(name, worker.case, kind, message=message, place=place, details=details)


def _keep_case(keep: Path, folder: Path, outcome: Outcome, module: str, seed: int) -> None:
    """Copy the files of a bad case, with the outcome and the command that repeats it."""
    target = keep / f"{seed}-{outcome.case}-{outcome.target}"
    shutil.rmtree(target, ignore_errors=True)
    if folder.is_dir():
        shutil.copytree(folder, target / "files", symlinks=True, ignore=_list_special_files)
    target.mkdir(parents=True, exist_ok=True)
    description = dataclasses.asdict(outcome) | {"replay": f"python -m {module} --seed {seed} --case {outcome.case}"}
    details = description.pop("details")
    (target / "outcome.json").write_text(json.dumps(description, indent=1), encoding="utf-8", errors="backslashreplace")
    (target / "traceback.txt").write_text(details, encoding="utf-8", errors="backslashreplace")


def _list_special_files(folder: str, names: list[str]) -> list[str]:
    """Return pipes and sockets, which cannot be copied."""
    paths = {name: Path(folder) / name for name in names}
    return [name for name, path in paths.items() if not (path.is_symlink() or path.is_file() or path.is_dir())]


# ---------------------------------------------------------------------- summary


def format_summary(outcomes: Sequence[Outcome]) -> str:
    """Return a table of outcomes by target, and the bad ones by place.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Outcomes of a run.

    Returns
    -------
    str
        Markdown.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        counts[outcome.target][outcome.kind] += 1
    totals = Counter(outcome.kind for outcome in outcomes)
    lines = [
        "| target | cases | " + " | ".join(OUTCOMES) + " | slowest s | peak MB |",
        "| --- |" + " ---: |" * (len(OUTCOMES) + 3),
    ]
    for name, by_kind in [*sorted(counts.items()), ("all", totals)]:
        chosen = [outcome for outcome in outcomes if name in ("all", outcome.target)]
        slowest = max((outcome.seconds for outcome in chosen), default=0.0)
        peak = max((outcome.peak_bytes for outcome in chosen), default=0) >> 20
        cells = [f"{by_kind[kind]:,}" for kind in OUTCOMES]
        lines.append(f"| {name} | {by_kind.total():,} | {' | '.join(cells)} | {slowest:.1f} | {peak:,} |")
    findings: defaultdict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.is_bad:
            error = outcome.message.partition(":")[0] if outcome.kind == TRACEBACK else ""
            findings[outcome.kind, error[:60], outcome.place].append(outcome)
    for (kind, error, place), group in sorted(findings.items(), key=lambda item: -len(item[1])):
        example = min(group, key=lambda outcome: outcome.case)
        lines.append(
            f"- {len(group)}× {kind} {error} in {place or 'unknown place'}: {example.target} case {example.case}"
        )
        lines.append(f"  ({example.change[:200]}): {example.message[:200]!r}")
    return "\n".join(lines)


def main(module: str, arguments: Sequence[str] | None = None) -> None:
    """Run the fuzz cases of a module, or repeat one, from the command line.

    Parameters
    ----------
    module : str
        Dotted name of a module with ``TARGETS``.
    arguments : sequence of str, optional
        Arguments. Those of the program by default.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=importlib.import_module(module).__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the run")
    parser.add_argument("--cases", type=int, default=1000, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="repeat one case in this process and show its traceback")
    parser.add_argument("--target", action="append", help="run the cases of this target only; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--keep", type=Path, help="folder for the files of bad cases")
    parser.add_argument("--outcomes", type=Path, help="file for all outcomes, one JSON object per line")
    options = parser.parse_args(arguments)
    targets = load_targets(module)
    unknown = set(options.target or ()) - {target.name for target in targets}
    if unknown:
        parser.error(f"there is no target {sorted(unknown)}; the targets are {[target.name for target in targets]}")
    if options.case is not None:
        folder = options.keep or Path(tempfile.mkdtemp(prefix="wisecrowd-fuzz-"))
        folder.mkdir(parents=True, exist_ok=True)
        print(f"files of the case: {folder}", file=sys.stderr)
        outcome = run_case(targets[options.case % len(targets)], folder, options.seed, options.case)
        print(outcome.details or outcome.message)
        print(
            f"{outcome.target}: {outcome.kind}; {outcome.change}; {outcome.seconds:.1f} s, {outcome.peak_bytes >> 20} MB"
        )
        sys.exit(outcome.is_bad)
    numbers: Iterable[int] = range(options.first, options.first + options.cases)
    if options.target:
        numbers = [case for case in numbers if targets[case % len(targets)].name in options.target]
    outcomes = []
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(options.outcomes.open("w")) if options.outcomes else None
        for outcome in run_cases(module, options.seed, numbers, n_jobs=options.jobs, keep=options.keep):
            outcomes.append(outcome)
            if file is not None:
                print(json.dumps(dataclasses.asdict(outcome)), file=file, flush=True)
            if len(outcomes) % 500 == 0:
                n_bad = sum(item.is_bad for item in outcomes)
                print(f"{len(outcomes):,} cases, {n_bad:,} bad", file=sys.stderr, flush=True)
    print(format_summary(outcomes))
    sys.exit(any(outcome.is_bad for outcome in outcomes))
