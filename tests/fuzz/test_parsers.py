"""No bytes make a reader raise what it does not say that it raises."""

from __future__ import annotations

import pytest
from fuzz.targets import TARGETS, Target, attempt, corpus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def mutated(target: Target) -> st.SearchStrategy[bytes]:
    """Free bytes, and the seeds with stretches cut out, doubled, swapped or overwritten."""
    seeds = list(target.seeds())

    def cut(seed: bytes, start: int, length: int, middle: bytes, times: int) -> bytes:
        start %= max(len(seed), 1)
        return seed[:start] + middle * times + seed[start + length :]

    near = st.builds(
        cut, st.sampled_from(seeds), st.integers(0, 1 << 14), st.integers(0, 40), st.binary(max_size=12),
        st.integers(0, 8),
    )  # fmt: skip
    return st.one_of(near, near, st.binary(max_size=300), st.text(max_size=120).map(lambda text: text.encode("utf-8")))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_bytes_raise_what_a_reader_does_not_promise(target: Target) -> None:
    """Bytes of any kind, and real inputs with damage."""

    @given(mutated(target))
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def check(data: bytes) -> None:
        attempt(target, data)

    check()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_seed_and_every_input_that_once_found_something_is_read(target: Target) -> None:
    """The corpus is replayed."""
    inputs = list(corpus(target))
    assert inputs
    for data in inputs:
        attempt(target, data)
