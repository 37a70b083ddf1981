"""Volcano's recorded admission answers, in process: the same verdicts, its words, its defaults."""

import pytest

from tests.conformance.admission import Played, is_for_schema, play
from tests.conformance.recordings import read, themes

#: Verdicts that differ, and why.
VERDICTS = {
    "job/update-unknown-field": "the schema prunes the field before any webhook sees it",
    "queue/update-parent-cycle": "a queue that is its own ancestor is a mistake",
}

#: Words that ours do not say, and why.
UNSAID = {
    "job/task-name-three-times": "Volcano stops counting at the first duplicate, and miscounts",
}

#: Defaults that are not the same, and why.
DEFAULTS = {
    "job/defaults-scheduler-kept": "another scheduler's job is none of our business",
    "job/schema-scheduler-name-dotted": "another scheduler's job is none of our business",
    "job/policy-unknown-field": "pruned by the schema",
    "job/template-unknown-pod-field": "pruned by the schema",
    "job/schema-unknown-spec-field": "pruned by the schema",
    "job/schema-unknown-task-field": "pruned by the schema",
    "job/schema-unknown-top-field": "pruned by the schema",
    "podgroup/unknown-field": "pruned by the schema",
    "queue/schema-unknown-field": "pruned by the schema",
    "job/numa-thousand-milli": "a quantity is left as it was written",
    "job/depends-empty-names": "what was written is left: an empty list",
}


@pytest.fixture(scope="module")
def played() -> list[Played]:
    return [one for theme in themes("admission") for one in play(theme)]


def test_every_verdict_is_volcanos(played: list[Played]) -> None:
    assert len(played) > 600
    wrong = {one.key: one.message for one in played if one.expected != one.allowed}
    assert wrong.keys() == VERDICTS.keys(), wrong


def test_refusals_say_the_words_that_volcanos_users_look_for(played: list[Played]) -> None:
    refused = [one for one in played if not one.expected and not one.allowed]
    unsaid = {one.key: (one.unsaid, one.message) for one in refused if one.unsaid}
    assert unsaid.keys() == UNSAID.keys(), unsaid


def test_objects_are_stored_as_volcanos_webhooks_leave_them(played: list[Played]) -> None:
    different = {one.key: one.mutated for one in played if one.mutated}
    assert different.keys() == DEFAULTS.keys(), different


def test_what_is_left_to_the_schema_is_a_minority() -> None:
    """A filter that grows would hide rules."""
    left = {
        theme.partition("/")[2]: sum(map(is_for_schema, read(theme)["cases"]))
        for theme in themes("admission")
    }
    assert left == {
        "command": 1,
        "cronjob": 7,
        "hypernode": 14,
        "job": 67,
        "jobflow": 4,
        "pod": 0,
        "podgroup": 10,
        "queue": 18,
    }
