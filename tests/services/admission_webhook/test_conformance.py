"""The shared cases with Volcano's own answers, where our scope covers them.

The cases are not part of this repository: they lie beside it (`../shared/conformance`) on machines
where Tutti is developed.
"""

from pathlib import Path

import pytest

from tests.services.admission_webhook.conformance import Played, play

FOLDER = Path(__file__).parents[4] / "shared" / "conformance" / "admission"

#: What the webhook answers for in this version; the rest of the Job validation comes later.
SCOPE = {
    "podgroup": ("4.4",),
    "queue": ("1.3", "4.3"),
    "pod": ("4.4",),
    "job": ("4.2 tasks", "4.2 queue", "4.2 mutate"),
}
#: Verdicts that differ, and why they may.
DIFFERENT = {
    "podgroup/name-uppercase": "the API server refuses the name",
    "queue/schema-name-uppercase": "the API server refuses the name",
    "podgroup/update-min-member-negative": "the schema refuses it; Volcano's webhook does not look",
    "podgroup/namespace-queue-missing": "annotations of namespaces are not shown to us",
    "queue/defaults-no-spec": "a fault of Volcano's patch (500), not a rule",
    "queue/defaults-hierarchy-root-only": "hierarchies of other queues are not in the stream",
    "queue/anno-prefix-of-existing": "hierarchies of other queues are not in the stream",
    "queue/update-annotation-hierarchy": "hierarchies of other queues are not in the stream",
}


@pytest.fixture(scope="module")
def played() -> list[Played]:
    if not FOLDER.is_dir():
        pytest.skip("the shared conformance cases are not on this machine")
    return play(FOLDER)


def in_scope(one: Played) -> bool:
    return one.cites.startswith(SCOPE[one.file])


def test_every_verdict_in_scope_is_volcanos_but_those_that_say_why(played: list[Played]) -> None:
    scope = [one for one in played if in_scope(one)]
    assert len(scope) > 250
    assert {one.key for one in scope if not one.agrees} == set(DIFFERENT)


def test_nothing_that_volcano_takes_is_refused(played: list[Played]) -> None:
    """Users' manifests go on working, also those whose rules are not all here yet."""
    assert [one.key for one in played if one.expected and not one.allowed] == []


def test_defaults_of_jobs_queues_and_groups_are_volcanos(played: list[Played]) -> None:
    """Left aside: unknown fields (the schema prunes them) and what other rules than ours add."""
    scope = [one for one in played if in_scope(one) and one.file != "pod"]
    different = {one.key for one in scope if one.same_defaults is False}
    compared = [one for one in scope if one.same_defaults is not None]
    plugins = {key for key in different if key.startswith("job/plugin-")}
    assert different - plugins == {
        "podgroup/unknown-field",
        "podgroup/namespace-queue-used",
        "podgroup/namespace-queue-default-counts-as-unset",
        "queue/schema-unknown-field",
        "queue/defaults-status-at-create-dropped",
        "job/defaults-scheduler-kept",  # another scheduler's job is none of our business
        "job/defaults-partition-topology-mode",
    }
    assert len(compared) > 80
