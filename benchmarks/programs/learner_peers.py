"""Train one learner on LabelMe: ``learner_peers.py DATA CONTENDER EPOCHS SEED``.

DATA is an npz file with the arrays X, votes (tasks x workers, -1 without vote), X_test and y_test. All networks have one hidden
layer of 128 units with dropout, batches of 64 tasks and Adam with rate 0.001. Prints processor seconds of the fit and the
accuracy on the test tasks, or for CROWDLAB on the training tasks. A fit to a few tasks comes first, so that imports do not
count.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import torch
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)
path, contender, n_epochs, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with np.load(path) as arrays:
    X, votes, X_test, y_test, y_train = (arrays[name] for name in ("X", "votes", "X_test", "y_test", "y_train"))
MEAN, SCALE = X.mean(axis=0), X.std(axis=0) + 1e-12
N_CLASSES, N_WORKERS = int(y_test.max()) + 1, votes.shape[1]
HIDDEN, BATCH, RATE = 128, 64, 1e-3
#: Tasks of the first fit.
FEW = 100


class Perceptron(nn.Module):
    """Network with one hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(X.shape[1], HIDDEN), nn.ReLU(), nn.Dropout(0.5), nn.Linear(HIDDEN, N_CLASSES)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def make_crowd():
    from wisecrowd import Crowd

    task, worker = np.nonzero(votes >= 0)
    return Crowd.from_codes(
        task, worker, votes[task, worker], tasks=range(len(votes)), workers=range(N_WORKERS), classes=range(N_CLASSES)
    )


def run_wisecrowd(name: str) -> float:
    """Train one of our learners."""
    from wisecrowd import methods

    settings = {"batch_size": BATCH, "hidden": HIDDEN, "random_state": seed}
    crowd, learner = make_crowd(), methods("learn")[name](epochs=n_epochs, **settings)
    methods("learn")[name](epochs=1, **settings).fit(X[:FEW], crowd[np.arange(FEW)].replace_fields(has_task_order=True))
    start = time.process_time()
    learner.fit(X, crowd)
    seconds = time.process_time() - start
    return report(seconds, learner.predict(X_test) == y_test)


def run_skactiveml(name: str) -> float:
    """Train a classifier of scikit-activeml."""
    from skactiveml.classifier.multiannotator import AnnotMixClassifier, CrowdLayerClassifier

    kind = {"crowd-layer": CrowdLayerClassifier, "annot-mix": AnnotMixClassifier}[name]
    torch.manual_seed(seed)
    options = {
        "max_epochs": n_epochs, "batch_size": BATCH, "lr": RATE, "optimizer": torch.optim.Adam, "verbose": 0,
        "iterator_train__shuffle": True,
    }  # fmt: skip
    model = kind(clf_module=Perceptron, neural_net_param_dict=options, classes=np.arange(N_CLASSES), random_state=seed)
    labels = np.where(votes >= 0, votes, np.nan).astype(np.float64)
    rows = ((X - MEAN) / SCALE).astype(np.float32)
    few = kind(clf_module=Perceptron, neural_net_param_dict={**options, "max_epochs": 1}, classes=np.arange(N_CLASSES))
    few.fit(rows[:FEW], labels[:FEW])
    start = time.process_time()
    model.fit(rows, labels)
    seconds = time.process_time() - start
    return report(seconds, model.predict(((X_test - MEAN) / SCALE).astype(np.float32)) == y_test)


def run_crowdkit(name: str) -> float:
    """Train a module of crowd-kit in the loop of its examples: one row per vote."""
    from crowdkit.learning import CoNAL, CrowdLayer

    torch.manual_seed(seed)
    rows = torch.from_numpy(((X - MEAN) / SCALE).astype(np.float32))
    test = torch.from_numpy(((X_test - MEAN) / SCALE).astype(np.float32))
    network = Perceptron()
    task, worker = map(torch.from_numpy, np.nonzero(votes >= 0))
    label = torch.from_numpy(votes)[task, worker]
    layer = CrowdLayer(N_CLASSES, N_WORKERS) if name == "crowd-layer" else CoNAL(N_CLASSES, N_WORKERS)

    def compute_loss(batch: torch.Tensor) -> torch.Tensor:
        inputs, workers = rows[task[batch]], worker[batch]
        if name == "crowd-layer":
            return nn.functional.cross_entropy(layer(torch.softmax(network(inputs), dim=1), workers), label[batch])
        logits = network(inputs)
        return nn.functional.nll_loss(torch.log(layer(inputs, logits, workers).clamp_min(1e-10)), label[batch])

    votes_per_batch = BATCH * len(task) // len(rows)  # as many steps as with batches of tasks
    compute_loss(torch.arange(FEW)).backward()  # lazy layers
    start = time.process_time()
    optimiser = torch.optim.Adam([*network.parameters(), *layer.parameters()], lr=RATE)
    for _ in range(n_epochs):
        for batch in torch.randperm(len(task)).split(votes_per_batch):
            optimiser.zero_grad()
            compute_loss(batch).backward()
            optimiser.step()
    seconds = time.process_time() - start
    network.eval()
    with torch.no_grad():
        predicted = network(test).argmax(dim=1).numpy()
    return report(seconds, predicted == y_test)


def run_crowdlab(library: str) -> float:
    """Compute the consensus of CROWDLAB from class probabilities that are the same for both."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    majority = np.array([np.bincount(row[row >= 0], minlength=N_CLASSES).argmax() for row in votes])
    rows = (X - MEAN) / SCALE
    pred_probs = cross_val_predict(
        LogisticRegression(C=0.02, max_iter=200), rows, majority, cv=5, method="predict_proba"
    )
    if library == "cleanlab":
        from cleanlab.multiannotator import get_label_quality_multiannotator

        table = pd.DataFrame(np.where(votes >= 0, votes, np.nan))
        start = time.process_time()
        result = get_label_quality_multiannotator(table, pred_probs, verbose=False)
        seconds = time.process_time() - start
        return report(seconds, result["label_quality"]["consensus_label"].to_numpy() == y_train)
    from wisecrowd import CrowdLab

    crowd = make_crowd()
    few = crowd[np.arange(FEW)].replace_fields(has_task_order=True)
    CrowdLab(pred_probs=pred_probs[:FEW]).fit(rows[:FEW], few)
    start = time.process_time()
    model = CrowdLab(pred_probs=pred_probs).fit(rows, crowd)  # it also trains a classifier for new tasks
    seconds = time.process_time() - start
    return report(seconds, model.labels_.to_numpy() == y_train)


def report(seconds: float, is_right: np.ndarray) -> float:
    print(json.dumps({"seconds": seconds, "accuracy": float(is_right.mean())}))
    return seconds


if __name__ == "__main__":
    library, _, method = contender.partition(" ")
    if method == "crowdlab":
        run_crowdlab(library)
    else:
        {"wisecrowd": run_wisecrowd, "skactiveml": run_skactiveml, "crowd-kit": run_crowdkit}[library](method)
