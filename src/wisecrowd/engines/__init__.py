"""Engines: where sums over votes are computed. Statistics are additive, so methods are the same on every engine."""

from wisecrowd.engines.base import Chunk, ChunkFunction, ChunkState, Engine
from wisecrowd.engines.local import LocalEngine, StreamEngine
from wisecrowd.engines.selection import encode_gold_by_shard, engine_for

__all__ = [
    "Chunk",
    "ChunkFunction",
    "ChunkState",
    "Engine",
    "LocalEngine",
    "StreamEngine",
    "encode_gold_by_shard",
    "engine_for",
]
