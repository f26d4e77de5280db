"""Two processes that train together come to what one does, or say why they cannot."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd import load
from wisecrowd.nn import process_group as _ranks
from wisecrowd.nn.process_group import SINGLE_PROCESS, ProcessGroup, compute_digest, current_process_group
from wisecrowd.utils import progress

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no processes that train together", allow_module_level=True)

#: How far two processes may be from one, in double precision, where sums differ by their order alone.
CLOSE = 1e-9
#: Seconds after which processes that wait for each other are given up.
PATIENCE = 120

#: Fits by name, in one process here and in two there.
FITS = """
import os, signal, sys, warnings
import numpy as np, torch
import wisecrowd as wc

made = wc.simulate_crowd(n_tasks=90, n_workers=9, n_classes=3, votes_per_task=3, random_state=0)
place = made.crowd.classes.get_indexer(made.truth)
X = np.random.default_rng(0).normal(size=(90, 4)) + 2 * np.eye(4)[place]
images = np.random.default_rng(1).normal(size=(90, 1, 4, 4)) + place[:, None, None, None]
gold = made.truth.iloc[::9]
nn = torch.nn

def convolutions(shape, n_classes):
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout2d(0.2), nn.Flatten(),
        nn.Linear(64, 8), nn.BatchNorm1d(8, momentum=None), nn.SELU(), nn.AlphaDropout(0.1), nn.Linear(8, n_classes),
    )

class Words(nn.Module):  # rows of several parts, which are rows to the layers inside
    def __init__(self, n_classes):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6, affine=False, track_running_stats=False))
        self.drop, self.last = nn.Dropout(0.3), nn.Linear(6, n_classes)
    def forward(self, rows):
        return self.last(self.drop(self.each(rows.reshape(-1, 2))).reshape(len(rows), 2, 6).mean(dim=1))

class Drawing(nn.Module):  # it draws without a layer that could be told of the others
    def __init__(self, n_classes):
        super().__init__()
        self.last = nn.Linear(4, n_classes)
    def forward(self, rows):
        return self.last(nn.functional.dropout(rows, 0.3, self.training))

def fit(name, features=X, truth=None, **settings):
    settings = {"epochs": 3, "batch_size": 32, "precision": "double", "hidden": 8} | settings
    return getattr(wc, name)(**settings).fit(features, made.crowd, truth=truth)

FITS = {
    "matrices": lambda: fit("CrowdLayer", epochs=8),
    "with gold": lambda: fit("CrowdLayer", truth=gold, variant="affine"),
    "selected": lambda: fit("CrowdLayer", validation=0.2, keep="selected"),
    "one task a step": lambda: fit("CrowdLayer", epochs=1, batch_size=1),
    "all tables": lambda: fit("UnionNet", optimiser="sgd"),
    "norms": lambda: fit("CrowdLayer", images, classifier=convolutions),
    "folded": lambda: fit("CrowdLayer", classifier=lambda shape, n: Words(n)),
    "coupled": lambda: fit("CCC", epochs=6, n_groups=3),
    "coupled with gold": lambda: fit("CCC", images, gold, classifier=convolutions, n_groups=3, warmup=1),
    "coupled, all layers": lambda: fit("CCC", meta="full", n_groups=3, warmup=1),
    "compared": lambda: fit("MaxMIG"),
    "mixed": lambda: fit("AnnotMix", truth=gold, embedding=8),
    "two stages": lambda: fit("DoctorNet", variant="WDN", weight_epochs=2),
    "workers of a batch": lambda: fit("TraceReg"),
    "sorted": lambda: fit("CoupledView", images, classifier=convolutions),
}

def learnt(model, features):
    found = {"posterior": model.posterior_, "confusion": model.confusion_, "proba": model.predict_proba(features)}
    return found | {"loss": model.history_[["loss", "validation"]].to_numpy()}

def of(name):
    model = FITS[name]()
    return learnt(model, images if len(model.feature_shape_) > 1 else X)
"""
_space: dict[str, Any] = {}
exec(FITS, _space)


def start(program: str, *arguments: object, module: bool = False) -> list[tuple[int, str, str]]:
    """Start two processes as torchrun does and return their exit codes, outputs and errors."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m" if module else "-c", program, *map(str, arguments)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as stack:
        started = []
        for rank in range(2):
            process = subprocess.Popen(command, env=os.environ | told | {"RANK": str(rank)}, **pipes)
            stack.enter_context(process)
            stack.callback(process.kill)
            started.append(process)
        said = [process.communicate(timeout=PATIENCE) for process in started]
        return [(process.returncode, *each) for process, each in zip(started, said, strict=True)]


# ---------------------------------------------------------------------- the same as one

#: A fit that can be resumed, in which the second process may die after the third of six epochs.
KEPT = """
from wisecrowd.nn.epoch_watchers import watch_epochs

def kept(folder, dies=False):
    batch = []
    def look(model):
        batch.append(1)
        if dies and os.environ.get("RANK") == "1" and len(batch) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    with watch_epochs(look):
        model = fit("CCC", epochs=6, n_groups=3, warmup=1, checkpoint=str(folder))
    model.save(f"{folder}/model")
    return learnt(model, X) | {"epochs": np.array(len(batch))}
"""

exec(KEPT, _space)

#: Gradients as a step leaves them, of parameters and of tables that no memory holds.
GRADIENTS = """
from wisecrowd.nn.process_group import ProcessGroupError, current_process_group

team, many = current_process_group(), 10**12
dense = [torch.zeros(2, requires_grad=True) for _ in range(3)]
dense[0].grad = torch.tensor([1.0, 2.0]) * (team.rank + 1)
if team.is_first:
    dense[1].grad = torch.ones(2)
tables = [torch.zeros(1, 2).expand(many, 2).requires_grad_() for _ in range(3)]
rows = [[0, 3, 3], [3, many - 1]][team.rank]
tables[0].grad = torch.sparse_coo_tensor([rows], torch.ones(len(rows), 2) * (team.rank + 1), (many, 2))
if not team.is_first:
    tables[1].grad = torch.sparse_coo_tensor([[2]], torch.ones(1, 2), (many, 2))
loss = team.sum_gradients(dense, tables, torch.tensor(0.5 + team.rank))
found["sums/loss"] = loss.numpy()
found["sums/dense"] = np.stack([dense[0].grad, dense[1].grad])
found["sums/rows"] = np.concatenate([each.grad.indices()[0] for each in tables[:2]])
found["sums/values"] = np.concatenate([each.grad.values()[:, 0] for each in tables[:2]])
found["sums/none"] = np.array([dense[2].grad is None, tables[2].grad is None])
"""

#: Fits in which the two processes do not do the same.
REFUSED = """
def refused(*arguments, **settings):
    try:
        fit(*arguments, **settings)
    except ProcessGroupError as error:
        print(error)

refused("CrowdLayer", X + team.rank)
refused("CrowdLayer", random_state=team.rank)
refused("CrowdLayer", batch_size=31, classifier=lambda shape, n: Drawing(n))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, str, str]], list[str]]:
    """The folder of a fit of which one process was killed, how both ended, and the files that they left."""
    folder = tmp_path_factory.mktemp("killed")
    ended = start(FITS + KEPT + "kept(sys.argv[1], dies=True)", folder)
    shutil.copytree(folder, folder.with_name("killed-copy"))
    return folder, ended, [file.suffix for file in folder.iterdir()]


@pytest.fixture(scope="module")
def pair(killed: tuple[Path, Any, Any], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Resume a killed fit in two processes and return their results and outputs."""
    folder = tmp_path_factory.mktemp("pair")
    ended = start(
        FITS
        + KEPT
        + """
found = {f"{name}/{key}": value for name in FITS for key, value in of(name).items()}
found |= {f"kept/{key}": value for key, value in kept(sys.argv[1]).items()}
"""
        + GRADIENTS
        + REFUSED
        + """
np.savez(f"{sys.argv[2]}/{team.rank}.npz", **found)
torch.distributed.barrier()
sys.stdout.flush()
os._exit(0)  # after refused work, gloo may abort while Python ends
""",
        killed[0],
        folder,
    )
    assert [code for code, _, _ in ended] == [0, 0], ended
    return [
        dict(np.load(folder / f"{rank}.npz")) | {"said": said.splitlines()} for rank, (_, said, _) in enumerate(ended)
    ]


@pytest.mark.parametrize("name", _space["FITS"])
def test_two_processes_come_to_what_one_does(name: str, pair: list[dict[str, Any]]) -> None:
    for key, alone in _space["of"](name).items():
        np.testing.assert_allclose(pair[0][f"{name}/{key}"], alone, rtol=0, atol=CLOSE, err_msg=key)


def test_all_processes_learn_the_same_to_the_bit(pair: list[dict[str, Any]]) -> None:
    for key, first in pair[0].items():
        np.testing.assert_array_equal(pair[1][key], first, err_msg=key)


def test_gradients_are_summed_and_sparse_ones_stay_sparse(pair: list[dict[str, Any]]) -> None:
    assert pair[0]["sums/loss"] == 2.0
    assert pair[0]["sums/dense"].tolist() == [[3, 6], [1, 1]]
    assert pair[0]["sums/rows"].tolist() == [0, 3, 10**12 - 1, 2]
    assert pair[0]["sums/values"].tolist() == [1, 4, 2, 1]
    assert pair[0]["sums/none"].all(), "where nobody has a gradient, none is made"


# ---------------------------------------------------------------------- what can go wrong


def test_a_process_that_is_killed_is_missed(killed: tuple[Path, list[tuple[int, str, str]], list[str]]) -> None:
    _, (first, second), files = killed
    assert (first[0], second[0]) == (1, -9)
    assert "ProcessGroupError: another process of the group has ended" in first[2]
    assert "training resumes from the last checkpoint" in first[2]
    assert files == [".npz"], "one file, and it is whole"


def test_what_was_killed_goes_on_in_two_processes_or_in_one(
    killed: tuple[Path, Any, Any], pair: list[dict[str, Any]]
) -> None:
    alone = _space["learnt"](_space["fit"]("CCC", epochs=6, n_groups=3, warmup=1), _space["X"])
    resumed = _space["kept"](killed[0].with_name("killed-copy"))
    assert max(pair[0]["kept/epochs"], resumed["epochs"]) < 6, "some epochs were not trained again"
    for key, value in alone.items():
        np.testing.assert_allclose(pair[0][f"kept/{key}"], value, rtol=0, atol=CLOSE, err_msg=key)
        np.testing.assert_allclose(resumed[key], value, rtol=0, atol=CLOSE, err_msg=key)
    proba = load(killed[0] / "model").predict_proba(_space["X"])  # type: ignore[attr-defined]  # it is a learner
    np.testing.assert_allclose(proba, alone["proba"], rtol=0, atol=CLOSE)


def test_processes_that_do_not_do_the_same_are_told(pair: list[dict[str, Any]]) -> None:
    data, seed, drawn = pair[0]["said"]
    assert data.startswith("the 2 processes of the group do different work: features or votes differ")
    assert seed.endswith("weights, settings or checkpoints differ")
    assert "use layers such as torch.nn.Dropout" in drawn


def test_the_command_line_speaks_once(tmp_path: Path) -> None:
    made, votes, features = _space["made"], tmp_path / "votes.csv", tmp_path / "X.npz"
    made.crowd.to_frame().to_csv(votes, index=False)
    np.savez(features, task=made.truth.index.to_numpy(dtype="U"), X=_space["X"])
    arguments = ["learn", votes, "-x", features, "-m", "crowd-layer", "-p", "epochs=2", "-o", tmp_path / "results"]
    first, second = start("wisecrowd", *arguments, module=True)
    assert (first[0], second) == (0, (0, "", "")), first
    assert "Wrote" in first[1]
    assert (tmp_path / "results" / "labels.csv").exists()


# ---------------------------------------------------------------------- alone


def test_a_process_that_nobody_started_with_others_is_alone() -> None:
    assert current_process_group() is SINGLE_PROCESS
    assert not torch.distributed.is_initialized()
    assert progress.is_main_process()
    SINGLE_PROCESS.wait()
    SINGLE_PROCESS.check_equal("nothing can differ", object())


def test_children_of_a_member_are_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert progress.read_launcher_rank() == (1, 2)
    assert not progress.is_main_process()
    monkeypatch.setenv(_ranks.MEMBER_VARIABLE, str(os.getppid()))
    assert current_process_group() is SINGLE_PROCESS


def test_some_other_launcher_that_says_only_a_rank_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    assert progress.is_main_process()
    assert current_process_group() is SINGLE_PROCESS


@given(size=st.integers(1, 9), number=st.integers(0, 60))
def test_every_row_is_one_process_s(size: int, number: int) -> None:
    places = [ProcessGroup(rank, size).own_rows(number) for rank in range(size)]
    if number < size:
        assert places == [None] * size
        return
    rows = [row for place in places if place is not None for row in range(number)[place]]
    lengths = [place.stop - place.start for place in places if place is not None]
    assert rows == list(range(number))
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int64", "uint8", "bool"])
def test_a_bit_more_is_another_digest(kind: str) -> None:
    before = torch.zeros(3, 2, dtype=getattr(torch, kind))
    after = before.clone()
    after[1, 1] = 1
    assert compute_digest([{"a": before}]) == compute_digest([{"a": before.clone()}])
    assert compute_digest([{"a": before}]) != compute_digest([{"a": after}])
    assert compute_digest([{"a": before}]) != compute_digest([{"b": before}])
    assert compute_digest([before.reshape(2, 3)]) != compute_digest([before])
    assert compute_digest([np.zeros(2)]) != compute_digest([np.ones(2)])
