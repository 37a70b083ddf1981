"""A few inputs to every target, drawn by Hypothesis; `python -m tests.fuzz` feeds millions."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.running import Tally, fed, made_by, tried
from tests.fuzz.targets import Target, targets

TARGETS = tuple(targets())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@given(seed=st.integers(1, 2**40))
@settings(max_examples=6)
def test_every_input_ends_in_a_result_or_in_the_typed_error(target: Target, seed: int) -> None:
    made = made_by(target, seed)
    assert fed(target, made) == "", f"python -m tests.fuzz --target {target.name!r} --seed {seed}"


def test_a_seed_makes_the_same_input_whatever_was_made_before() -> None:
    """What is put into one input was once changed within the next: seeds could not be played again,
    and some inputs grew for ever.
    """
    for target in (one for one in TARGETS if not one.is_yaml):
        made = [made_by(target, seed) for seed in range(1, 30)]
        assert [made_by(target, seed) for seed in range(29, 0, -1)] == made[::-1], target.name


def test_each_kind_of_finding_is_found() -> None:
    def crash(body: bytes) -> object:
        raise KeyError(body)

    def linger(_: bytes) -> object:
        ends_s = time.thread_time() + 0.08
        while time.thread_time() < ends_s:
            pass
        return None

    def what(feed: object, seed: int) -> str:
        assert callable(feed)
        found = tried(Target("x", lambda _, __: b"input", feed), seed, Tally())
        return "" if found is None else found.what

    assert what(crash, 1).startswith("KeyError")
    assert "of CPU" in what(linger, 1)
    assert "at the peak" in what(lambda _: bytes(16 << 20), 101), "every 101st is weighed"
    assert what(bytes.upper, 1) == ""


def test_targets_are_fed_what_they_take_and_what_they_refuse() -> None:
    """A target that refuses all it gets tests nothing but its first line."""
    for target in (one for one in TARGETS if not one.is_yaml):
        tally = Tally()
        for seed in range(1, 20):
            fed(target, made_by(target, seed), tally)
        assert tally.refused < 19, f"{target.name} takes nothing"
