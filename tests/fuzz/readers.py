"""Hostile files for every reader and command of wisecrowd.

    python -m tests.fuzz.readers --seed 7 --cases 20000 --keep findings
    python -m tests.fuzz.readers --seed 7 --case 123

A target is a valid sample of a format. A case mutates one or two of its files and reads them with every function that takes
them, and with one command. Each must return or raise a `WisecrowdError` that names the file.
"""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import functools
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz import runner
from tests.fuzz.mutators import gzip_bytes, mutate, write_zip
from tests.fuzz.runner import Target
from tests.io.conftest import EXPORTS

from wisecrowd.errors import InputError, WisecrowdError

#: Name of the folder of input files, and of the file with the command of a case.
INPUT, COMMAND = "input", "command.json"
#: Kinds of mutators by suffix. "bytes" is added to all.
KINDS = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".arffx"), ("text", "csv")),
    **dict.fromkeys((".json", ".jsonl"), ("json", "text")),
    **dict.fromkeys((".png", ".jpg", ".gif"), ("image",)),
    **dict.fromkeys((".bz2", ".zst", ".webp"), ()),
    ".gz": ("gzip",),
    **dict.fromkeys((".zip", ".xlsx"), ("zip",)),
    ".npz": ("npz",),
    ".npy": ("array",),
    ".parquet": ("parquet",),
    ".xml": ("xml", "text"),
}
#: Share of cases in which a file becomes a folder, a pipe, a link to itself or an endless device.
SPECIAL_FILES = 0.01
#: Share of cases in which a file has the suffix of another format.
WRONG_SUFFIX = 0.03
#: Share of cases that also run a command.
COMMANDS = 0.3
#: Methods of the command ``aggregate``, of different families.
METHODS = (
    "dawid-skene",
    "majority-vote",
    "glad",
    "zencrowd",
    "kos",
    "bwa",
    "ibcc",
    "mace",
    "wawa",
    "minimax-entropy",
    "panel",
)

Step = Callable[[Path], object]


@dataclasses.dataclass(frozen=True)
class Sample:
    """Valid files, and what reads them.

    Parameters
    ----------
    name : str
        Name of the target.
    files : mapping of str to bytes
        Content by path.
    path : str
        File or folder that the steps take.
    steps : sequence of callable
        Functions that read the files.
    commands : sequence of list of str
        Commands, of which a case runs one. "{path}" stands for the file or folder, "{folder}" for the folder of all input files,
        "{method}" for a method.
    intact : sequence of str, default=()
        Files that are not mutated.
    """

    name: str
    files: Mapping[str, bytes]
    path: str
    steps: Sequence[Step]
    commands: Sequence[str] = ()
    intact: Sequence[str] = ()

    def prepare(self, folder: Path, rng: np.random.Generator) -> str:
        """Write the files of a case."""
        names = [name for name in self.files if name not in self.intact]
        n_hostile = min(len(names), 1 + int(rng.random() < 0.2))
        hostile = set(rng.choice(names, size=n_hostile, replace=False).tolist())
        changes, path = [], self.path
        for name, content in self.files.items():
            file = folder / INPUT / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if name not in hostile:
                file.write_bytes(content)
                continue
            if rng.random() < SPECIAL_FILES:
                changes.append(f"{name}: {_make_special_file(file, rng)}")
                continue
            data, mutators = mutate(content, rng, [*KINDS.get(file.suffix, ("text",)), "bytes"])
            if rng.random() < WRONG_SUFFIX:
                suffix = str(rng.choice([*KINDS, "", ".xlsx", ".pq", ".CSV", ".csv.gz", ".ndjson"]))
                if name == path:
                    path = str(Path(name).with_suffix(suffix)) if suffix else Path(name).stem
                file = file.with_suffix(suffix)
                mutators.append(f"called {file.name}")
            file.write_bytes(data)
            changes.append(f"{name}: {', '.join(mutators)}")
        command = []
        if self.commands and rng.random() < COMMANDS:
            chosen = self.commands[int(rng.integers(len(self.commands)))]
            place = {
                "path": folder / INPUT / path,
                "folder": folder / INPUT,
                "method": METHODS[rng.integers(len(METHODS))],
            }
            command = [word.format(**place) for word in chosen.split()]
            changes.append(" ".join(["wisecrowd", *command]))
        (folder / COMMAND).write_text(json.dumps({"path": path, "command": command}))
        return "; ".join(changes)

    def run(self, folder: Path) -> None:
        """Read the files of a case with every step. The first step decides whether the case is refused."""
        case = json.loads((folder / COMMAND).read_text())
        refusals: list[WisecrowdError | None] = []
        for step in self.steps:
            try:
                with _limit_time(step):
                    step(folder / INPUT / case["path"])
                refusals.append(None)
            except WisecrowdError as error:
                refusals.append(error)
                if isinstance(error, InputError) and str(folder) not in str(error):
                    raise AssertionError(f"the refusal does not name the file: {error}") from error
        if case["command"]:
            with _limit_time(case["command"]):
                _run_command(case["command"])
        if refusals and refusals[0] is not None:
            raise refusals[0]


@contextlib.contextmanager
def _limit_time(part: object) -> Iterator[None]:
    """Raise an error if one step or command takes longer than a case may."""
    begin = time.process_time()
    try:
        yield
    finally:
        seconds = time.process_time() - begin
        if seconds > runner.MAX_SECONDS:
            raise runner.TooSlow(f"{part} took {seconds:.0f} s")


def _make_special_file(file: Path, rng: np.random.Generator) -> str:
    choice = int(rng.integers(5))
    if choice == 0:
        file.mkdir()
        return "a folder"
    if choice == 1:
        os.mkfifo(file)
        return "a pipe"
    if choice == 2:
        file.symlink_to(file)
        return "a link to itself"
    if choice == 3:
        file.symlink_to("/dev/zero")
        return "a link to /dev/zero"
    return "missing"


# ---------------------------------------------------------------------- steps


def read_votes(path: Path, **options: Any) -> None:
    """Read votes and fit methods. Results must be finite."""
    import wisecrowd as wc

    crowd = wc.read(path, **options)
    methods = (wc.Mean(), wc.Median()) if crowd.is_numeric else (wc.MajorityVote(), wc.DawidSkene(max_iter=5))
    for method in methods:
        try:
            method.fit(crowd)
        except WisecrowdError:  # for example, votes without workers
            continue
        if not crowd.is_numeric and not np.isfinite(method.proba_.to_numpy()).all():
            raise AssertionError(f"{method.name} returned probabilities that are not finite")


def read_leniently(path: Path, **options: Any) -> None:
    """Read votes with rules for repeated votes and missing values."""
    read_votes(path, duplicates="keep", missing="drop", **options)


def read_numbers(path: Path, **options: Any) -> None:
    """Read numeric votes."""
    read_votes(path, numeric=True, duplicates="first", **options)


def read_without_workers(path: Path, **options: Any) -> None:
    """Read votes without worker ids."""
    read_votes(path, worker=False, **options)


def check(path: Path) -> None:
    """Check votes, and render the report on them."""
    from wisecrowd.io.validation.vote_checks import check_votes

    str(check_votes(path))


def read_gold(path: Path) -> None:
    """Read the truth as categories."""
    from wisecrowd.io import read_truth

    read_truth(path)


def read_numeric_gold(path: Path) -> None:
    """Read the truth as numbers."""
    from wisecrowd.io import read_truth

    read_truth(path, numeric=True)


def read_questions(path: Path) -> None:
    """Read all questions of a labelling tool's export."""
    from wisecrowd.io import read_project

    read_project(path, duplicates="keep")


def import_votes(path: Path) -> None:
    """Import votes into the service."""
    from wisecrowd.service.vote_files import read_events

    for _ in read_events(path):
        pass


def load_dataset(path: Path) -> None:
    """Load a dataset with truth, features and texts."""
    import wisecrowd as wc

    dataset = wc.load_dataset(path)
    for name in ("crowd", "truth", "features", "texts", "meta"):
        getattr(dataset, name, None)


def read_features(path: Path) -> None:
    """Read features and align them with votes."""
    import wisecrowd as wc
    from wisecrowd.io.features import read_features as read

    features = read(path)
    crowd = wc.Crowd.from_triples([(task, "ann", "cat") for task in features.tasks[:3]])
    try:
        features.align(crowd)
    except WisecrowdError as error:
        raise type(error)(f"{path}: {error}") from None


def read_members(path: Path) -> None:
    """Read a table of workers."""
    from wisecrowd.io.members import read_members as read

    read(path)


def read_texts(path: Path) -> None:
    """Read texts of tasks and put them on a report."""
    from wisecrowd.report.texts import read_texts as read

    read(path)


def embed_images(path: Path) -> None:
    """Read images of tasks and embed them."""
    from wisecrowd.report.images import read_images
    from wisecrowd.report.thumbnails import embed_thumbnails

    images = read_images(path)
    thumbnails = embed_thumbnails(list(images), 4_000_000)
    for source in thumbnails.sources:
        if source is not None and not source.startswith(("data:image/png;base64,", "data:image/jpeg;base64,")):
            raise AssertionError(f"an image was embedded as {source[:40]}")


def read_results(path: Path) -> None:
    """Read the labels, probabilities and requests that a command wrote."""
    from wisecrowd.cli import _results

    answers, run = _results.read_answers(path)
    _results.read_posterior(path, run)
    _results.read_queue(path)
    assert len(answers)


def pull_project(path: Path) -> None:
    """Pull the tasks of a Label Studio server whose responses are hostile."""
    import httpx

    from wisecrowd.io.tools.label_studio_server import LabelStudioClient, Token
    from wisecrowd.io.tools.label_studio_sync import pull, push

    body = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    interface = {"mood": {"type": "Choices", "to_name": ["text"], "labels": ["good"]}}
    project = json.dumps({"id": 1, "title": "Mood", "parsed_label_config": interface}).encode()

    def respond(request: httpx.Request) -> httpx.Response:
        content = project if "/projects/1/" in request.url.path and request.method == "GET" else body
        return httpx.Response(200, content=content, headers={"content-type": "application/json"})

    token, transport = Token("0123456789abcdef"), httpx.MockTransport(respond)
    for action in (
        lambda client: pull(client, 1, path.parent / "export.json"),
        lambda client: push(client, 1, pd.Series({"11": "good"}), dry_run=True),
        lambda client: (client.get_version(), client.get_project(2)),
    ):
        with LabelStudioClient("http://127.0.0.1:8080", token, transport=transport, wait=lambda _: None) as client:
            try:
                action(client)
            except WisecrowdError:
                continue


def _run_command(words: list[str]) -> None:
    """Run a command in this process. It may fail with a message, and not with an exception."""
    from typer.testing import CliRunner

    result = CliRunner(env={"COLUMNS": "80"}).invoke(_app(), words, prog_name="wisecrowd", catch_exceptions=False)
    if "not enough memory" in result.output:
        raise MemoryError(" ".join(words))


@functools.cache
def _app() -> Any:
    from wisecrowd.cli import _memory, build_app

    # A command that ends soon may keep freed memory; here it would count for all later cases of the process.
    _memory.keep_freed_memory = lambda: None
    return build_app()


# ---------------------------------------------------------------------- samples


def _votes(n_tasks: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [(f"t{task}", worker) for task in range(n_tasks) for worker in ("ann", "bob", "cy")]
    frame = pd.DataFrame(rows, columns=["task", "worker"])
    frame["label"] = rng.choice(["cat", "dog", "é"], len(frame))
    frame["weight"] = rng.choice([1.0, 0.5, 2.0], len(frame))
    frame["time"] = pd.date_range("2024-01-01", periods=len(frame), freq="min").strftime("%Y-%m-%dT%H:%M:%SZ")
    return frame


def _csv(frame: pd.DataFrame, separator: str = ",") -> bytes:
    return frame.to_csv(index=False, sep=separator).encode()


def _jsonl(frame: pd.DataFrame) -> bytes:
    return frame.to_json(orient="records", lines=True).encode()


def _parquet(frame: pd.DataFrame) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), sink)
    return sink.getvalue().to_pybytes()


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _image(kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(file, kind, **options)
    return file.getvalue()


VOTES = _votes()
GOLD = pd.DataFrame({"task": [f"t{task}" for task in range(12)], "truth": ["cat", "dog", "é"] * 4})
FEATURES = pd.DataFrame(np.random.default_rng(1).normal(size=(12, 3)).round(3), columns=["a", "b", "c"])
FEATURES.insert(0, "task", GOLD["task"])
NPZ = write_zip({"task.npy": _npy(GOLD["task"].to_numpy(dtype="U")), "X.npy": _npy(FEATURES[["a", "b", "c"]])})
MEMBERS = pd.DataFrame(
    {"worker": ["ann", "bob", "cy"], "kind": ["person", "machine", "machine"], "group": ["", "gpt", "gpt"]}
)
TEXTS = pd.DataFrame({"task": GOLD["task"], "text": [f"Is this <b>{task}</b>?" for task in GOLD["task"]]})
PEERANNOT = {str(task): {str(worker): (task + worker) % 3 for worker in range(3)} for task in range(6)}
CEKA = {
    "pets.response.txt": "".join(f"w{w}\tt{t}\t{(t + w) % 2}\n" for t in range(6) for w in range(3)).encode(),
    "pets.gold.txt": "".join(f"t{t}\t{t % 2}\n" for t in range(6)).encode(),
    "pets.arffx": (
        "@relation pets\n@attribute size numeric\n@attribute class {0,1}\n@data\n"
        + "".join(f"{t},{t % 2}\n" for t in range(6))
        + "@ID-MAP\n"
        + "".join(f"t{t}\n" for t in range(6))
    ).encode(),
}
FOLDER = {
    "annotations.parquet": _parquet(VOTES[["task", "worker", "label"]]),
    "truth.parquet": _parquet(GOLD.rename(columns={"truth": "label"})),
    "features.npz": NPZ,
    "texts.parquet": _parquet(TEXTS),
    "tasks.parquet": _parquet(GOLD[["task"]]),
    "meta.json": json.dumps({"name": "pets", "classes": ["cat", "dog", "é"], "numeric": False, "n_tasks": 12}).encode(),
}
PEERANNOT_FILES = {
    "answers.json": json.dumps(PEERANNOT).encode(),
    "metadata.json": b'{"n_classes": 3, "n_task": 6}',
    "ground_truth.npy": _npy([0, 1, 2] * 2),
}
IMAGES = {
    "votes.csv": _csv(VOTES),
    "images/t0.png": _image("PNG"),
    "images/t1.jpg": _image("JPEG"),
    "images/t2.gif": _image("GIF", "P"),
    "images/t3.webp": _image("WEBP"),
    "images/t4.jpg": _image("JPEG", "CMYK"),
    "images/t5.png": _image("PNG", "I;16"),
    "images/t6.png": _image("PNG", "P"),
    "images/t7.png": _image("PNG", "RGBA", (400, 300)),
    "images/t8.png": _image("PNG", "1"),
    "images/t9.png": _image("PNG", "LA"),
}
RESULTS = {
    "results/labels.csv": b"task,label,confidence\n" + b"".join(b"1%d,good,0.9\n" % n for n in range(1, 3)),
    "results/posterior.csv": b"task,bad,good\n11,0.1,0.9\n12,0.2,0.8\n",
    "results/requests.csv": b"task,worker,information\n11,1,0.5\n",
    "results/run.json": json.dumps(
        {"version": "0.1.0", "method": "majority-vote", "files": ["labels.csv", "posterior.csv", "requests.csv"],
         "command": {"question": "mood", "format": "label-studio", "votes": "export.json"}, "input": {"votes": 4}}
    ).encode(),
    "export.json": EXPORTS["label-studio"][2],
}  # fmt: skip
EXPORT_COMMANDS = (
    "export {path} --project {folder}/export.json -o out.json",
    "export {path} --queue --project {folder}/export.json -o out.json",
)
COCO = json.dumps(
    {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 80, "annotators": ["ann", "bob"]}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 30], "annotator": "ann"}],
    }
).encode()
PAGE = json.dumps({"tasks": json.loads(EXPORTS["label-studio"][2]), "total": 2, "created": 1}).encode()

#: Commands that read votes.
VOTE_COMMANDS = (
    "check {path}",
    "aggregate {path} -o out --proba",
    "aggregate {path} -m {method} -o out --duplicates last --missing drop",
    "aggregate {path} --numeric -m median",
    "diagnose {path} --duplicates distinct",
    "plan {path} --budget 5 --duplicates first",
    "report {path} --no-compare --duplicates keep --missing drop",
    "compare {path} -m majority-vote -m dawid-skene --duplicates distinct",
)
#: Command that reads tables only.
SHARD_COMMAND = "shard {path} -o shards --duplicates last --missing drop --memory 300MB"
#: Commands that read the exports of labelling tools.
TOOL_COMMANDS = (
    "questions {path}",
    "questions {path} --json",
    "check {path} --question mood",
    "aggregate {path} -o out --proba",
    "report {path} --no-compare",
)


def _xlsx(table: pd.DataFrame) -> bytes:
    """Return a table as a workbook of Excel with one sheet, always of the same bytes."""
    rows = [list(table.columns), *table.astype(str).to_numpy().tolist()]
    cells = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{value}</t></is></c>' for value in row) + "</row>" for row in rows
    )
    main, office = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://schemas.openxmlformats.org"
    relations = f"{office}/officeDocument/2006/relationships"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
        '<sheet name="votes" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r1" '
        f'Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
    }
    return write_zip({name: text.encode() for name, text in files.items()})


#: Command that uses features, and command that shows texts, images or truth.
FEATURES_COMMAND = "aggregate {folder}/votes.csv -m mnldp --features {path}"
REPORT_COMMAND = "report {folder}/votes.csv --no-compare"


def _vote_sample(name: str, file: str, content: bytes, format: str | None = None) -> Sample:
    """Return a table of votes, or a file whose format is named because it is not detected."""
    reading = [read_leniently, read_votes, read_numbers, read_without_workers]
    if format is None:
        return Sample(name, {file: content}, file, [*reading, check, import_votes], [*VOTE_COMMANDS, SHARD_COMMAND])
    steps = [functools.partial(step, format=format) for step in reading]
    return Sample(name, {file: content}, file, steps, [f"{command} --format {format}" for command in VOTE_COMMANDS])


def _folder_sample(name: str, files: Mapping[str, bytes], *steps: Step) -> Sample:
    files = {f"{name}/{file}": content for file, content in files.items()}
    return Sample(
        name, files, name, [read_votes, read_leniently, check, read_gold, load_dataset, *steps], VOTE_COMMANDS
    )


def _tool_sample(name: str, file: str, content: bytes, format: str) -> Sample:
    steps = [read_questions, read_votes, functools.partial(read_votes, format=format), check, read_gold, import_votes]
    return Sample(f"tool-{name}", {file: content}, file, steps, TOOL_COMMANDS)


def _side_sample(name: str, content: bytes, step: Step, *commands: str) -> Sample:
    """Return a file that is read beside votes; its name is the name of the sample."""
    files = {"votes.csv": _csv(VOTES), name: content}
    return Sample(name, files, name, [step], commands, intact=["votes.csv"])


SAMPLES = (
    _vote_sample("csv", "votes.csv", _csv(VOTES)),
    _vote_sample("csv-plain", "votes.csv", _csv(VOTES[["task", "worker", "label"]])),
    _vote_sample("csv-gz", "votes.csv.gz", gzip_bytes(_csv(VOTES))),
    _vote_sample("csv-bz2", "votes.csv.bz2", bz2.compress(_csv(VOTES))),
    _vote_sample("csv-zst", "votes.csv.zst", pa.compress(_csv(VOTES), codec="zstd", asbytes=True)),
    _vote_sample("tsv", "votes.tsv", _csv(VOTES, "\t")),
    _vote_sample("jsonl", "votes.jsonl", _jsonl(VOTES)),
    _vote_sample("jsonl-gz", "votes.jsonl.gz", gzip_bytes(_jsonl(VOTES))),
    _vote_sample("json", "votes.json", VOTES.to_json(orient="records").encode()),
    _vote_sample("json-gz", "votes.json.gz", gzip_bytes(VOTES.to_json(orient="records").encode())),
    _vote_sample("parquet", "votes.parquet", _parquet(VOTES)),
    _vote_sample("excel", "votes.xlsx", _xlsx(VOTES)),
    _vote_sample(
        "wide", "votes.csv", b"task,ann,bob,cy\n" + b"".join(b"t%d,1,0,\n" % task for task in range(6)), "wide"
    ),
    _vote_sample("mace", "votes.csv", b"1,0,1\n0,,1\n,1,1\n" * 4, "mace"),
    _vote_sample("peerannot-inverted", "answers_inversed.json", json.dumps(PEERANNOT).encode(), "peerannot-inverted"),
    _folder_sample("folder", FOLDER, read_features, read_texts),
    _folder_sample("ceka", CEKA),
    _folder_sample(
        "truth-inference", {"answer.csv": _csv(VOTES[["task", "worker", "label"]]), "truth.csv": _csv(GOLD)}
    ),
    _folder_sample("peerannot", PEERANNOT_FILES),
    _folder_sample("peerannot-txt", {"answers.txt": b"0 1 2\n1 -1 2\n2 0 -1\n"}),
    *(_tool_sample(name, file, content, format) for name, (format, file, content) in EXPORTS.items()),
    _tool_sample("coco", "instances.json", COCO, "coco"),
    _side_sample("gold.csv", _csv(GOLD), read_gold, "aggregate {folder}/votes.csv --gold {path}"),
    _side_sample("gold-numbers.csv", _csv(GOLD.assign(truth=1.5)), read_numeric_gold),
    _side_sample("gold.parquet", _parquet(GOLD), read_gold, "aggregate {folder}/votes.csv --score {path}"),
    _side_sample("gold.jsonl", _jsonl(GOLD), read_gold, f"{REPORT_COMMAND} --score {{path}}"),
    _side_sample("X.npz", NPZ, read_features, FEATURES_COMMAND, f"{REPORT_COMMAND} --features {{path}}"),
    _side_sample("X.csv", _csv(FEATURES), read_features, FEATURES_COMMAND),
    _side_sample("X.csv.gz", gzip_bytes(_csv(FEATURES)), read_features, FEATURES_COMMAND),
    _side_sample("X.parquet", _parquet(FEATURES), read_features, FEATURES_COMMAND),
    _side_sample(
        "members.csv",
        _csv(MEMBERS),
        read_members,
        "aggregate {folder}/votes.csv -m panel --members {path}",
        "plan {folder}/votes.csv --budget 3 --members {path} --costs machine=0.1",
    ),
    _side_sample(
        "members.parquet", _parquet(MEMBERS), read_members, "aggregate {folder}/votes.csv -m panel --members {path}"
    ),
    _side_sample("texts.csv", _csv(TEXTS), read_texts, f"{REPORT_COMMAND} --texts {{path}}"),
    _side_sample("texts.parquet", _parquet(TEXTS), read_texts, f"{REPORT_COMMAND} --texts {{path}}"),
    _side_sample(
        "images.csv", b"task,image\nt0,a.png\nt1,b/c.png\n", embed_images, f"{REPORT_COMMAND} --images {{path}}"
    ),
    Sample("images", IMAGES, "images", [embed_images], [f"{REPORT_COMMAND} --images {{path}}"], intact=["votes.csv"]),
    Sample("results", RESULTS, "results", [read_results], EXPORT_COMMANDS),
    Sample("label-studio-server", {"page.json": PAGE}, "page.json", [pull_project]),
)
TARGETS = tuple(
    Target(sample.name, sample.prepare, sample.run, max_seconds=(len(sample.steps) + 1) * runner.MAX_SECONDS)
    for sample in SAMPLES
)

if __name__ == "__main__":
    runner.main("tests.fuzz.readers")
