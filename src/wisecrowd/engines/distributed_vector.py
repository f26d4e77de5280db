"""Vectors that are too long for one machine: a part that all chunks share, and a part next to each chunk.

Sums, differences and products of such vectors are not evaluated; they are stored as polynomials in vectors that exist. An
optimiser needs only scalar products, which follow from the scalar products of the terms. Missing products are computed
together in one pass and cached. The many vector operations of an optimiser therefore cost a pass over disk or cluster
only where a new vector comes in.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from wisecrowd.engines.base import Chunk, ChunkState, Engine
from wisecrowd.engines.retained import pack_retained, unpack_retained

_serial_numbers = itertools.count()


class _StoredVector:
    """A vector that exists; its parts next to the chunks are packed as in `engines.retained`."""

    def __init__(self, shared: NDArray[Any], chunk_values: ChunkState) -> None:
        self.shared, self.chunk_values = shared, chunk_values
        self.serial_number = next(_serial_numbers)
        #: Scalar products of terms of which this vector is the youngest, by the serial numbers of their factors. They are
        #: deleted with it.
        self.dots: dict[tuple[tuple[int, ...], ...], float] = {}


#: Vectors that are multiplied elementwise, in the order of their serial numbers.
Term = tuple[_StoredVector, ...]


class DistributedVector(NDArrayOperatorsMixin):
    """Immutable vector with the arithmetic of arrays, computed where its parts are.

    Parameters
    ----------
    engine : Engine
        Engine that holds the parts.
    terms : dict
        Polynomial: coefficients by term.

    Examples
    --------
    >>> from wisecrowd import Crowd
    >>> from wisecrowd.engines import LocalEngine
    >>> from wisecrowd.engines.retained import read_retained
    >>> engine = LocalEngine(Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog")]))
    >>> state = engine.retain(lambda chunk: pack_retained([1.0, 9.0]))
    >>> vector = DistributedVector.from_parts(engine, np.array([4.0]), state)
    >>> root = np.sqrt(3 * vector - 2 * vector)
    >>> root.shared, list(engine.map(read_retained, root.chunk_values))
    (array([2.]), [array([1., 3.])])
    >>> dot(root, root * root - vector), dot(root, root)
    (0.0, 14.0)
    """

    def __init__(self, engine: Engine, terms: dict[Term, float]) -> None:
        self.engine, self.terms = engine, terms

    @classmethod
    def from_parts(cls, engine: Engine, shared: NDArray[Any], chunk_values: ChunkState) -> DistributedVector:
        """Return a vector with given values.

        Parameters
        ----------
        engine : Engine
            Engine that holds the chunk values.
        shared : ndarray
            Part that all chunks share.
        chunk_values : ChunkState
            Parts of the chunks, packed with `pack_retained`.

        Returns
        -------
        DistributedVector
        """
        return cls(engine, {(_StoredVector(shared, chunk_values),): 1.0})

    @property
    def shared(self) -> NDArray[Any]:
        """Part that all chunks share."""
        return self._evaluate().shared

    @property
    def chunk_values(self) -> ChunkState:
        """Handle of the parts next to the chunks."""
        return self._evaluate().chunk_values

    def _evaluate(self) -> _StoredVector:
        """Evaluate the polynomial and replace it by the result."""
        is_stored = len(self.terms) == 1 and all(
            len(term) == 1 and coefficient == 1 for term, coefficient in self.terms.items()
        )
        if not is_stored:
            vectors, terms = _index_terms(self.terms)
            polynomial = list(zip(terms, self.terms.values(), strict=True))
            shared = _evaluate_polynomial(polynomial, [vector.shared for vector in vectors])
            chunk_values = self.engine.retain(_evaluate_chunk, polynomial, *(vector.chunk_values for vector in vectors))
            self.terms = {(_StoredVector(shared, chunk_values),): 1.0}
        ((vector,),) = self.terms
        return vector

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> DistributedVector:
        if method != "__call__" or options:
            return NotImplemented
        if ufunc in (np.add, np.subtract) and all(isinstance(operand, DistributedVector) for operand in inputs):
            x, y = inputs
            sign = 1.0 if ufunc is np.add else -1.0
            y_terms = ((term, sign * coefficient) for term, coefficient in y.terms.items())
            return DistributedVector(self.engine, _collect_terms(itertools.chain(x.terms.items(), y_terms)))
        if ufunc is np.multiply:
            factors = [
                operand.terms if isinstance(operand, DistributedVector) else {(): float(operand)} for operand in inputs
            ]
            return DistributedVector(self.engine, _collect_terms(
                (tuple(sorted(x_term + y_term, key=lambda vector: vector.serial_number)), x_coefficient * y_coefficient)
                for (x_term, x_coefficient), (y_term, y_coefficient) in itertools.product(
                    *(terms.items() for terms in factors)
                )
            ))  # fmt: skip
        shared = ufunc(*(operand.shared if isinstance(operand, DistributedVector) else operand for operand in inputs))
        operands = (operand.chunk_values if isinstance(operand, DistributedVector) else operand for operand in inputs)
        chunk_values = self.engine.retain(_apply_ufunc, ufunc, *operands)
        return DistributedVector.from_parts(self.engine, shared, chunk_values)


def dot(x: Any, y: Any) -> float:
    """Return the scalar product of two arrays, or of two distributed vectors.

    Parameters
    ----------
    x, y : ndarray or DistributedVector
        Vectors of the same kind and length.

    Returns
    -------
    float

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    if not isinstance(x, DistributedVector):
        # Not by BLAS, whose threads wait for each other ten times as long as they compute on a busy machine.
        return float(np.einsum("i,i->", x.ravel(), y.ravel()))
    pairs = list(itertools.product(x.terms, y.terms))
    missing = {_dot_key(pair): pair for pair in pairs if _dot_key(pair) not in _youngest(pair).dots}
    if missing:
        vectors, terms = _index_terms(itertools.chain(*missing.values()))
        term_pairs = list(zip(terms[::2], terms[1::2], strict=True))
        chunk_dots = x.engine.sum(_dot_chunk, term_pairs, *(vector.chunk_values for vector in vectors))
        dots = chunk_dots + _dot_terms(term_pairs, [vector.shared for vector in vectors])
        for pair, value in zip(missing.values(), dots.tolist(), strict=True):
            _youngest(pair).dots[_dot_key(pair)] = value
    return sum(x.terms[pair[0]] * y.terms[pair[1]] * _youngest(pair).dots[_dot_key(pair)] for pair in pairs)


def _collect_terms(terms: Iterable[tuple[Term, float]]) -> dict[Term, float]:
    """Add up the coefficients of equal terms."""
    coefficients: dict[Term, float] = {}
    for term, coefficient in terms:
        coefficients[term] = coefficients.get(term, 0.0) + coefficient
    return coefficients


def _dot_key(pair: tuple[Term, Term]) -> tuple[tuple[int, ...], ...]:
    """Return the key under which the scalar product of two terms is cached."""
    return tuple(sorted(tuple(vector.serial_number for vector in term) for term in pair))


def _youngest(pair: tuple[Term, Term]) -> _StoredVector:
    """Return the vector that caches the scalar product of two terms."""
    return max(itertools.chain(*pair), key=lambda vector: vector.serial_number)


#: A term, by the positions of its factors in a list of vectors.
TermIndices = tuple[int, ...]


def _index_terms(terms: Iterable[Term]) -> tuple[list[_StoredVector], list[TermIndices]]:
    """Return the distinct vectors of some terms, and the terms by positions in that list."""
    positions: dict[_StoredVector, int] = {}
    indices = [tuple(positions.setdefault(vector, len(positions)) for vector in term) for term in terms]
    return list(positions), indices


def _multiply_factors(indices: TermIndices, values: list[Any]) -> Any:
    """Return the elementwise product of a term's factors."""
    product, *factors = (values[index] for index in indices)
    for factor in factors:
        product = product * factor
    return product


def _evaluate_polynomial(polynomial: list[tuple[TermIndices, float]], values: list[Any]) -> Any:
    """Return the value of a polynomial."""
    return sum(coefficient * _multiply_factors(indices, values) for indices, coefficient in polynomial)


def _dot_terms(term_pairs: list[tuple[TermIndices, TermIndices]], values: list[Any]) -> NDArray[np.float64]:
    """Return scalar products of pairs of terms; each term is evaluated once."""
    terms = {indices: _multiply_factors(indices, values) for pair in term_pairs for indices in pair}
    return np.array([dot(terms[first], terms[second]) for first, second in term_pairs])


def _apply_ufunc(chunk: Chunk, ufunc: np.ufunc, *values: Any) -> Any:  # noqa: ARG001  # signature of chunk functions
    """Chunk function: apply a ufunc to the parts of a chunk."""
    return pack_retained(
        ufunc(*(unpack_retained(value) if isinstance(value, np.ndarray) else value for value in values))
    )


def _evaluate_chunk(chunk: Chunk, polynomial: list[tuple[TermIndices, float]], *values: Any) -> Any:  # noqa: ARG001
    """Chunk function: evaluate a polynomial on the parts of a chunk."""
    return pack_retained(_evaluate_polynomial(polynomial, [unpack_retained(value) for value in values]))


def _dot_chunk(
    chunk: Chunk, term_pairs: list[tuple[TermIndices, TermIndices]], *values: Any  # noqa: ARG001
) -> NDArray[np.float64]:  # fmt: skip
    """Chunk function: compute a chunk's part of scalar products."""
    return _dot_terms(term_pairs, [unpack_retained(value) for value in values])
