"""Ranking by meaning: what a large index leaves out before it sorts."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from cleats.toolsets.code.search import meaning
from cleats.toolsets.code.search.ranking import FINDING_WEIGHTS, SearchPlan

CHUNK_COUNT = 20_000
LIMIT = 100


class _Chunks(NamedTuple):
    kind_weights: Any
    path_order: Any


def _rank(cosines: Any, mask: Any, weights: Any) -> list[int]:
    chunks = _Chunks(weights, np.arange(len(cosines)))
    plan = SearchPlan((), ("word",), is_strict=False, weights=FINDING_WEIGHTS)
    ranked = meaning.rank_by_meaning(chunks, meaning.ChunkCosines(cosines), mask, LIMIT, plan)
    positions: list[int] = ranked.positions.tolist()
    return positions


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mask_share", [0.02, 0.3, 1.0])
def test_the_closest_chunks_are_those_of_a_full_sort(seed: int, mask_share: float) -> None:
    rng = np.random.default_rng(seed)
    cosines = rng.random(CHUNK_COUNT, np.float32) ** 2
    mask = rng.random(CHUNK_COUNT) < mask_share
    weights = np.where(rng.random(CHUNK_COUNT) < 0.2, np.float32(0.6), np.float32(1))

    weighted = np.where(mask, cosines * weights, -1)
    best = np.lexsort((np.arange(CHUNK_COUNT), -weighted))[:LIMIT]

    assert _rank(cosines, mask, weights) == [position for position in best.tolist() if cosines[position] >= 0.2]


def test_a_sample_that_misses_the_best_chunks_hides_none() -> None:
    cosines = np.full(CHUNK_COUNT, 0.25, np.float32)
    cosines[:: meaning.SAMPLED_SHARE] = 0.9  # all that the sample sees
    mask = np.ones(CHUNK_COUNT, np.bool_)
    mask[: -meaning.SAMPLED_SHARE * 30 : meaning.SAMPLED_SHARE] = False

    found = _rank(cosines, mask, np.ones(CHUNK_COUNT, np.float32))

    assert len(found) == LIMIT
    assert {position for position in range(CHUNK_COUNT) if mask[position] and cosines[position] > 0.5} <= set(found)


def test_estimates_that_are_off_change_no_rank() -> None:
    rng = np.random.default_rng(5)
    cosines = rng.random(CHUNK_COUNT, np.float32)
    cosines[rng.integers(0, CHUNK_COUNT, CHUNK_COUNT // 2)] = np.float32(0.99)  # ties, also at the last rank
    errors = rng.uniform(-1, 1, CHUNK_COUNT).astype(np.float32) * np.float32(meaning.ESTIMATE_TOLERANCE)
    estimated = meaning.ChunkCosines(cosines + errors, cosines.__getitem__)
    mask, weights = np.ones(CHUNK_COUNT, np.bool_), np.ones(CHUNK_COUNT, np.float32)
    chunks = _Chunks(weights, np.arange(CHUNK_COUNT))
    plan = SearchPlan((), ("word",), is_strict=False, weights=FINDING_WEIGHTS)

    ranked = meaning.rank_by_meaning(chunks, estimated, mask, LIMIT, plan)

    assert ranked.positions.tolist() == np.lexsort((np.arange(CHUNK_COUNT), -cosines))[:LIMIT].tolist()
    assert ranked.scores.tolist() == cosines[ranked.positions].tolist()
