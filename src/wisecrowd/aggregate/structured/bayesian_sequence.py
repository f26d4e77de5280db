"""Bayesian sequence combination of spans."""

from __future__ import annotations

from typing import Any, ClassVar

from wisecrowd.aggregate.structured import _sequence_spans as sequences
from wisecrowd.aggregate.structured._sequence_model import SequencePrior
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.mark_aggregator import MarkAggregator, MarkInference
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.spans import SpanCrowd


@method_class
class BayesianSequence(MarkAggregator):
    """Bayesian sequence combination (BSC-seq): spans as tags of tokens, with workers who depend on their previous tag.

    True tags (outside; beginning and inside of each class) form a Markov chain. A worker gives a tag with a probability that
    depends on the true tag and on the tag that the worker gave before, so that a worker who begins spans too late or ends
    them too early is understood. With the texts of the tasks, words support each other across tasks, and no
    sentence depends on the one before.
    Inference is variational. The confidence of a span is the posterior probability of exactly this span.

    Offsets must count tokens, and spans do not overlap: of two overlapping spans of a worker, the later one is left out. Use
    `SpanConsensus` for characters and for spans that overlap or nest.

    Examples
    --------
    >>> from wisecrowd import BayesianSequence, simulate_spans
    >>> simulation = simulate_spans(n_tasks=50, n_workers=8, random_state=0)
    >>> BayesianSequence().fit(simulation.crowd).objects_.columns.tolist()
    ['task', 'start', 'end', 'label', 'confidence', 'n_marks', 'n_votes']
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("spans",)
    crowd_class: ClassVar[type[MarkCrowd]] = SpanCrowd
    uses_documents: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("simpson2019bayesian",)

    confusion_prior: float = parameter(default=1.0, help=sequences.CONFUSION_HELP)
    correct_prior: float = parameter(default=10.0, help=sequences.CORRECT_HELP)
    transition_prior: float = parameter(default=1.0, help=sequences.TRANSITION_HELP)
    word_prior: float = parameter(default=1.0, help=sequences.WORD_HELP)
    max_iter: int = parameter(default=100, help="Maximum number of iterations.")
    tol: float = parameter(default=1e-3, help="Largest change of a probability at convergence.")

    def _infer_objects(self, crowd: MarkCrowd, documents: Any) -> MarkInference:
        prior = SequencePrior(self.confusion_prior, self.correct_prior, self.transition_prior, self.word_prior)
        assert isinstance(crowd, SpanCrowd)
        return sequences.infer_spans(crowd, documents, prior, "sequential", max_iter=self.max_iter, tol=self.tol)
