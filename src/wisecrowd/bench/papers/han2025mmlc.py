"""MMLC and other methods on their training tasks, compared with table 1 and figure 3 of Han et al. (AAAI 2025)."""

from __future__ import annotations

from wisecrowd.bench.benchmark import Benchmark, Entry, parse_published_table
from wisecrowd.bench.entries import Aggregate
from wisecrowd.bench.papers._han import (
    ACCURACY,
    EPOCHS,
    NOTES,
    STATISTICAL,
    VECTOR_SPREAD,
    WITH_VOTES,
    HeadRetrained,
    Oracle,
    PaperSizes,
    TrainingTaskScores,
    crowds,
)

#: Figure 3 has six centres and the one that fits the truth best; "joint" is not in the paper.
CENTRES: dict[str, Entry] = {
    "MMLC-owf": Oracle("mmlc"),
    "kde-w": Oracle("mmlc", weights="labels"),
    "joint": Oracle("mmlc", centre="joint"),
    "median": Oracle("mmlc", centre="median"),
    "median-w": Oracle("mmlc", centre="median", weights="labels"),
    "mean": Oracle("mmlc", centre="mean"),
    "mean-w": Oracle("mmlc", centre="mean", weights="labels"),
    "centre by truth": Oracle("mmlc", centre="truth"),
    "Truth, head retrained": HeadRetrained("mmlc"),
}
#: Variants of the experts: a single one, whose workers are all equal, and the sizes of the paper.
VARIANTS: dict[str, Entry] = {
    "one expert": Oracle("mmlc", {"n_experts": 1}),
    "sizes of the paper": PaperSizes("mmlc"),
}
ENTRIES: dict[str, Entry] = {
    **{title: Aggregate(name) for title, name in STATISTICAL.items()},
    "Max-MIG": TrainingTaskScores("max-mig"),
    "CoNAL": TrainingTaskScores("conal"),
    "CrowdAR": TrainingTaskScores("crowd-ar"),
    **CENTRES,
    **VARIANTS,
}

#: Table 1 in per cent; the last row is from the text beside figure 3.
_TABLE = """
                    LabelMe   Text  Music
  MV                  76.76  71.33  71.42
  DS                  79.73  70.70  77.14
  FDS                 77.78  71.45  77.57
  HDS                 76.66  71.20  78.01
  Max-MIG             80.02  70.31  74.22
  CoNAL               81.46  72.75  76.02
  CrowdAR             82.14  70.48  78.54
  MMLC-owf            81.74  74.31  79.14
  centre_by_truth     96.32  91.25  92.97
  Truth,_head_retrained 96.32  91.25  92.97
"""


def published() -> dict[tuple[str, str, str], float]:
    """Return the values of table 1 as shares.

    >>> published()["centre by truth", "Text", "accuracy"]
    0.9125
    """
    return {
        (entry.replace("_", " "), data, figure): round(value / 100, 4)
        for (entry, data, figure), value in parse_published_table(_TABLE).items()
    }


def benchmark() -> Benchmark:
    """Return the benchmark of eight methods on three crowds, and of MMLC with every centre.

    >>> len(benchmark().cells)
    270
    """
    return Benchmark(
        title="Han et al. 2025, table 1 and figure 3: what is true of the tasks that were labelled",
        references=("han2025mmlc",),
        entries=ENTRIES,
        data=crowds(ACCURACY, WITH_VOTES, EPOCHS, VECTOR_SPREAD),
        published=published(),
        notes=NOTES | {
            "MMLC-owf": "The mode of the density of each coordinate, with a bandwidth by Silverman's rule and epochs by "
            "held-out votes. The authors chose bandwidths by the true accuracy, and epochs for each dataset. "
            "The rows below are other centres of the same fits.",
            "CoNAL": "In the paper better than the vote on Text; here far worse, because the step size of its own paper "
            "(.01, our default) is too large for these features: the network stays at .60 from the fourth epoch on. A step size "
            "of .001 gives .699, and .715 after 150 epochs (seed 0). The posterior, which uses the votes, is nearer.",
            "Max-MIG": "Better than in the paper everywhere: the authors' program of MMLC trains its rivals on the full features, "
            "ours has fixed features of pretrained networks, dropout and a step size of its own.",
            "CrowdAR": "Our features of Text are weaker than the paper's, and the default of 50 epochs is too short: 200 "
            "epochs give .696 (seed 0).",
            "one expert": "With one expert all workers have the same vector: what MMLC has beyond this row comes from workers.",
            "sizes of the paper": "Experts and layers of the paper for each dataset; all else is ours.",
            "Truth, head retrained": "Not available in practice: the authors' program retrains the layers after the mixture with "
            "the truth of the tasks that are scored.",
            "centre by truth": "An oracle that is not available in practice: the mixture of the same experts that predicts the "
            "truth best, found with the truth of the tasks that are scored. The paper's program retrains the layers after the "
            "mixture with the truth instead, which can do more.",
        },
        seeds=5,
        remarks=(
            "Accuracy on the training tasks, whose features and votes are known. The main figure is the "
            "accuracy of the classifier (for MMLC, of the oracle worker); *with votes* is that of the "
            "posterior. *Epochs* is the number of epochs that held-out votes chose. *Spread of v* is the largest standard "
            "deviation of an expert's share over the workers. Every learner has its "
            "defaults; mean of five seeds. `han2025mmlc-epochs` shows how far the chosen number of epochs is "
            "from the best.",
        ),
        time_limit=1800,
    )  # fmt: skip
