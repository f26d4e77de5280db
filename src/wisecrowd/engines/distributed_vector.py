"""Vectors too long for one place: a part that all chunks share, and a crowd_slice of the rest beside each of them.

Sums, differences and products of such vectors are only written down, as polynomials in vectors that exist. What is
wanted of them in the end are scalar products, which follow from those of the few terms, and these are taken in one pass
for all that are missing and remembered. An optimiser's many steps of algebra so cost a pass over disk or cluster only
where something new came in.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from wisecrowd.engines.base import Chunk, ChunkState, Engine
from wisecrowd.engines.retained import own_of, packed

_numbers = itertools.count()


class _Leaf:
    """A vector that exists; its stretches are kept as `engines.keeping` has them."""

    def __init__(self, shared: NDArray[Any], own: ChunkState) -> None:
        self.shared, self.own = shared, own
        self.number = next(_numbers)
        #: Scalar products of terms of which this leaf is the youngest, by the numbers of their leaves: they go with it.
        self.dots: dict[tuple[tuple[int, ...], ...], float] = {}


#: Leaves that are multiplied, coordinate by coordinate, in the order of their numbers.
Term = tuple[_Leaf, ...]


class Spread(NDArrayOperatorsMixin):
    """A vector for arithmetic as with arrays, done where its stretches are; nothing changes one in place.

    >>> from wisecrowd import Crowd
    >>> from wisecrowd.engines import LocalEngine
    >>> from wisecrowd.engines.retained import crowd_slice
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> vector = Spread.of(engine, np.array([4.0]), engine.keep(lambda chunk: packed([1.0, 9.0])))
    >>> root = np.sqrt(3 * vector - 2 * vector)
    >>> root.shared, list(engine.each(crowd_slice, root.own))
    (array([2.]), [array([1., 3.])])
    >>> dot(root, root * root - vector), dot(root, root)
    (0.0, 14.0)
    """

    def __init__(self, engine: Engine, terms: dict[Term, float]) -> None:
        self.engine, self.terms = engine, terms

    @classmethod
    def of(cls, engine: Engine, shared: NDArray[Any], own: ChunkState) -> Spread:
        """A vector that exists."""
        return cls(engine, {(_Leaf(shared, own),): 1.0})

    @property
    def shared(self) -> NDArray[Any]:
        """The part that all chunks share."""
        return self._settled().shared

    @property
    def own(self) -> ChunkState:
        """The stretches beside the chunks."""
        return self._settled().own

    def _settled(self) -> _Leaf:
        """This vector as one that exists, which it is from now on."""
        exists = len(self.terms) == 1 and all(len(term) == 1 and times == 1 for term, times in self.terms.items())
        if not exists:
            leaves, terms = _by_place(self.terms)
            formula = list(zip(terms, self.terms.values(), strict=True))
            shared = _polynomial(formula, [leaf.shared for leaf in leaves])
            own = self.engine.keep(_evaluate, formula, *(leaf.own for leaf in leaves))
            self.terms = {(_Leaf(shared, own),): 1.0}
        ((leaf,),) = self.terms
        return leaf

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Spread:
        if method != "__call__" or options:
            return NotImplemented
        if ufunc in (np.add, np.subtract) and all(isinstance(given, Spread) for given in inputs):
            left, right = inputs
            sign = 1.0 if ufunc is np.add else -1.0
            more = ((term, sign * times) for term, times in right.terms.items())
            return Spread(self.engine, _collected(itertools.chain(left.terms.items(), more)))
        if ufunc is np.multiply:
            factors = [given.terms if isinstance(given, Spread) else {(): float(given)} for given in inputs]
            return Spread(self.engine, _collected(
                (tuple(sorted(left + right, key=lambda leaf: leaf.number)), times * more)
                for (left, times), (right, more) in itertools.product(*(terms.items() for terms in factors))
            ))  # fmt: skip
        shared = ufunc(*(given.shared if isinstance(given, Spread) else given for given in inputs))
        owns = (given.own if isinstance(given, Spread) else given for given in inputs)
        return Spread.of(self.engine, shared, self.engine.keep(_apply, ufunc, *owns))


def dot(left: Any, right: Any) -> float:
    """The scalar product of two arrays, or of two spread vectors.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    if not isinstance(left, Spread):
        # Not by BLAS, which on a busy machine spends ten times as long waiting for its threads as computing.
        return float(np.einsum("i,i->", left.ravel(), right.ravel()))
    pairs = list(itertools.product(left.terms, right.terms))
    missing = {_key(pair): pair for pair in pairs if _key(pair) not in _youngest(pair).dots}
    if missing:
        leaves, terms = _by_place(itertools.chain(*missing.values()))
        asked = list(zip(terms[::2], terms[1::2], strict=True))
        own = left.engine.total(_dots, asked, *(leaf.own for leaf in leaves))
        found = own + _products(asked, [leaf.shared for leaf in leaves])
        for pair, value in zip(missing.values(), found.tolist(), strict=True):
            _youngest(pair).dots[_key(pair)] = value
    return sum(left.terms[pair[0]] * right.terms[pair[1]] * _youngest(pair).dots[_key(pair)] for pair in pairs)


def _collected(terms: Iterable[tuple[Term, float]]) -> dict[Term, float]:
    """Terms that are alike, added up."""
    found: dict[Term, float] = {}
    for term, times in terms:
        found[term] = found.get(term, 0.0) + times
    return found


def _key(pair: tuple[Term, Term]) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(tuple(leaf.number for leaf in term) for term in pair))


def _youngest(pair: tuple[Term, Term]) -> _Leaf:
    return max(itertools.chain(*pair), key=lambda leaf: leaf.number)


#: A term, by the places of its factors in a list of leaves.
Places = tuple[int, ...]


def _by_place(terms: Iterable[Term]) -> tuple[list[_Leaf], list[Places]]:
    """The leaves of some terms, each once, and the terms over them: what work is told of polynomials."""
    leaves: dict[_Leaf, int] = {}
    places = [tuple(leaves.setdefault(leaf, len(leaves)) for leaf in term) for term in terms]
    return list(leaves), places


def _product(places: Places, values: list[Any]) -> Any:
    first, *others = (values[place] for place in places)
    for value in others:
        first = first * value
    return first


def _polynomial(formula: list[tuple[Places, float]], values: list[Any]) -> Any:
    return sum(times * _product(places, values) for places, times in formula)


def _products(asked: list[tuple[Places, Places]], values: list[Any]) -> NDArray[np.float64]:
    """Scalar products of pairs of terms, each term multiplied out once."""
    terms = {places: _product(places, values) for pair in asked for places in pair}
    return np.array([dot(terms[left], terms[right]) for left, right in asked])


def _apply(chunk: Chunk, ufunc: np.ufunc, *values: Any) -> Any:  # noqa: ARG001  # one signature for all work
    """Work: a function of numbers on the stretches of a chunk."""
    return packed(ufunc(*(own_of(value) if isinstance(value, np.ndarray) else value for value in values)))


def _evaluate(chunk: Chunk, formula: list[tuple[Places, float]], *values: Any) -> Any:  # noqa: ARG001  # one signature for all work
    """Work: a chunk's crowd_slice of a vector that was only written down."""
    return packed(_polynomial(formula, [own_of(value) for value in values]))


def _dots(chunk: Chunk, asked: list[tuple[Places, Places]], *values: Any) -> NDArray[np.float64]:  # noqa: ARG001  # one signature for all work
    """Work: a chunk's part of scalar products."""
    return _products(asked, [own_of(value) for value in values])
