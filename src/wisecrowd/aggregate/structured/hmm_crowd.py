"""Hidden Markov model of spans with an accuracy per worker and tag."""

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
class HMMCrowd(MarkAggregator):
    """Hidden Markov model of tags in which a worker has one accuracy per true tag (HMM-Crowd).

    True tags form a Markov chain that emits words, if the texts of the tasks are given. A worker gives the right tag with an
    accuracy that depends on the tag, and all wrong tags equally often. `BayesianSequence` has more detailed workers and is
    more accurate.

    Offsets must count tokens, and spans do not overlap; see `BayesianSequence`.

    Examples
    --------
    >>> from wisecrowd import HMMCrowd, simulate_spans
    >>> simulation = simulate_spans(n_tasks=50, n_workers=8, random_state=0)
    >>> len(HMMCrowd().fit(simulation.crowd).tasks_)
    50
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("spans",)
    crowd_class: ClassVar[type[MarkCrowd]] = SpanCrowd
    uses_documents: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("nguyen2017aggregating",)

    confusion_prior: float = parameter(default=1.0, help=sequences.CONFUSION_HELP)
    correct_prior: float = parameter(default=10.0, help=sequences.CORRECT_HELP)
    transition_prior: float = parameter(default=1.0, help=sequences.TRANSITION_HELP)
    word_prior: float = parameter(default=1.0, help=sequences.WORD_HELP)
    max_iter: int = parameter(default=100, help="Maximum number of iterations.")
    tol: float = parameter(default=1e-3, help="Largest change of a probability at convergence.")

    def _infer_objects(self, crowd: MarkCrowd, documents: Any) -> MarkInference:
        prior = SequencePrior(self.confusion_prior, self.correct_prior, self.transition_prior, self.word_prior)
        assert isinstance(crowd, SpanCrowd)
        return sequences.infer_spans(crowd, documents, prior, "accuracy", max_iter=self.max_iter, tol=self.tol)
