"""Train a learner for some epochs on a simulated crowd: ``train.py METHOD WORKERS TASKS EPOCHS PARAMETERS [LABELS]``.

PARAMETERS is JSON. LABELS is the number of labels per task, three by default.

METHOD is a learner of wisecrowd, or "dense": CrowdLayer as it is often written, with an answer of every worker on every
task of a batch and a mask for missing votes. Prints processor milliseconds per step, those of the forward pass, and the
bytes that training added.
"""

import json
import resource
import statistics
import sys
import time
import warnings

import numpy as np
import torch

import wisecrowd
from wisecrowd import Crowd
from wisecrowd.nn.epoch_watchers import EpochSnapshot, watch_epochs

CLASSES, FEATURES, BATCH = 10, 64, 64

method, n_workers, n_tasks, n_epochs, parameters = sys.argv[1:6]
LABELS = int(sys.argv[6]) if len(sys.argv) > 6 else 3
n_workers, n_tasks, n_epochs = int(n_workers), int(n_tasks), int(n_epochs)
torch.set_num_threads(1)
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
truth = rng.integers(CLASSES, size=n_tasks)
X = rng.normal(size=(n_tasks, FEATURES)).astype(np.float32) + np.eye(FEATURES, dtype=np.float32)[truth]
worker = (rng.integers(n_workers, size=n_tasks)[:, None] + np.arange(LABELS)) % n_workers
label = np.where(rng.random((n_tasks, LABELS)) < 0.7, truth[:, None], rng.integers(CLASSES, size=(n_tasks, LABELS)))
task = np.repeat(np.arange(n_tasks), LABELS)
clock: list[float] = []
forward: list[float] = []


def tick(snapshot: EpochSnapshot | None = None) -> None:
    clock.append(time.process_time())
    if snapshot is not None and len(clock) == 2:  # the first epoch is over
        starts: list[float] = []
        snapshot.networks[0].trunk.register_forward_pre_hook(lambda *_: starts.append(time.process_time()))
        snapshot.networks[0].trunk.register_forward_hook(lambda *_: forward.append(time.process_time() - starts[-1]))


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def dense(n_epochs: int, n_workers: int, n_tasks: int) -> None:
    net = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 128), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(128, CLASSES)
    )
    layers = torch.nn.Parameter(torch.eye(CLASSES).repeat(n_workers, 1, 1))
    optimiser = torch.optim.Adam([*net.parameters(), layers], lr=1e-3)
    inputs, voters, labels = torch.from_numpy(X), torch.from_numpy(worker % n_workers), torch.from_numpy(label)
    for _ in range(n_epochs):
        for rows in torch.randperm(n_tasks).split(BATCH):
            answers = torch.full((len(rows), n_workers), -1)
            answers.scatter_(1, voters[rows], labels[rows])
            p = torch.softmax(net(inputs[rows]), dim=1)
            log_a = torch.log_softmax(torch.einsum("bk,rkl->brl", p, layers), dim=2)
            voted = answers >= 0
            picked = log_a.gather(2, answers.clamp_min(0)[:, :, None])[:, :, 0]
            loss = -(picked * voted).sum() / voted.sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        tick()


def ours(n_epochs: int, n_workers: int, n_tasks: int) -> None:
    first = slice(n_tasks * LABELS)
    crowd = Crowd.from_codes(
        task[first], worker.ravel()[first] % n_workers, label.ravel()[first], tasks=range(n_tasks), workers=range(n_workers),
        classes=range(CLASSES), duplicates="keep",
    )  # fmt: skip
    model = getattr(wisecrowd, method)(epochs=n_epochs, batch_size=BATCH, **json.loads(parameters))
    with watch_epochs(tick):
        model.fit(X[:n_tasks], crowd)


train = dense if method == "dense" else ours
train(2, LABELS, BATCH)  # imports and one-time set-up do not count
before = peak()
forward.clear()
clock = [time.process_time()]
train(n_epochs, n_workers, n_tasks)
steps = -(-n_tasks // BATCH)
epochs = np.diff(clock)[1:]
forward_ms = 1e3 * statistics.median(forward) if forward else float("nan")
figures = {
    "ms": 1e3 * statistics.median(epochs) / steps,
    "forward": forward_ms,
    "added": peak() - before,
    "peak": peak(),
}
print(json.dumps(figures))
