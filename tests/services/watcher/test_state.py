"""Decoded batches become changes; what is served decides how bare pods are read."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from services.watcher.core.cluster_state import ClusterWentBack
from services.watcher.state import WatcherState
from shared.dialects.discovery import readers
from shared.dialects.protocol import Kind
from shared.kinds.podgroup import PodGroup
from shared.kube import objects as kube
from shared.kube.decoding import Change, Undecodable
from shared.kube.resources import (
    DISRUPTION_BUDGETS,
    PODGROUPS_SIGS,
    PODGROUPS_VOLCANO,
    PODS,
    Resource,
)
from shared.model.objects import Pod
from tests.shared.dialects.reading import controlled_by, decoded, metadata, undecodable

NAMES = ("tutti", "kube-batch", "volcano")


READERS = readers()


def kind(resource: Resource) -> Kind:
    return READERS[resource][0]


def fresh() -> WatcherState:
    return WatcherState(NAMES, podgroup_controller=True)


def bare_pod(name: str = "p", version: str = "7") -> kube.Pod:
    meta = metadata(name, resourceVersion=version)
    return decoded(kube.Pod, {"metadata": meta, "spec": {"schedulerName": "volcano"}})


def listed(
    state: WatcherState, kinds: Sequence[Kind], objects: Iterable[object], version: int
) -> int:
    return state.listed(kinds, state.read(kinds, objects), version)


def pods_of(state: WatcherState) -> list[Pod]:
    state.cluster_state.take(epoch=1, at_ms=1)
    return [pod for pod in state.cluster_state.freeze().objects["pod"] if isinstance(pod, Pod)]


@pytest.mark.parametrize(
    ("served", "podgroup_controller", "group"),
    [(True, True, "podgroup-uid-p"), (False, True, ""), (True, False, "")],
)
def test_bare_pods_have_a_group_only_where_a_controller_can_and_does_make_it(
    *, served: bool, podgroup_controller: bool, group: str
) -> None:
    state = WatcherState(NAMES, podgroup_controller=podgroup_controller)
    if served:
        listed(state, READERS[PODGROUPS_VOLCANO], [], 5)
    else:
        state.absent(READERS[PODGROUPS_VOLCANO])
    listed(state, READERS[PODS], [bare_pod()], 6)
    assert [pod.group_name for pod in pods_of(state)] == [group]


def test_pods_listed_again_after_the_kind_came_are_changes_although_no_pod_changed() -> None:
    state = fresh()
    state.absent(READERS[PODGROUPS_VOLCANO])
    listed(state, READERS[PODS], [bare_pod()], 6)
    assert pods_of(state)[0].group_name == ""
    listed(state, READERS[PODGROUPS_VOLCANO], [], 8)
    assert state.reading.implied_groups
    assert listed(state, READERS[PODS], [bare_pod()], 9) == 1
    assert pods_of(state)[0].group_name == "podgroup-uid-p"


def test_a_watch_adds_changes_and_deletes() -> None:
    state = fresh()
    listed(state, READERS[PODS], [], 5)
    events = [
        Change("ADDED", bare_pod("a", "6")),
        Change("ADDED", bare_pod("b", "7")),
        Change("DELETED", bare_pod("a", "8")),
    ]
    assert state.changed(READERS[PODS], events, 8) == 3
    assert [pod.name for pod in pods_of(state)] == ["b"]
    assert dict(state.cluster_state.resource_versions())["pods"] == 8
    # A bookmark: nothing happened up to 20, so an older list cannot be true.
    assert state.changed(READERS[PODS], [], 20) == 0
    with pytest.raises(ClusterWentBack):
        listed(state, READERS[PODS], [], 19)


def test_a_budget_that_loses_its_owner_is_no_gang_any_more() -> None:
    def budget(version: str, owners: Any) -> kube.DisruptionBudget:
        meta = metadata("b", resourceVersion=version, ownerReferences=owners)
        return decoded(kube.DisruptionBudget, {"metadata": meta, "spec": {"minAvailable": 3}})

    state = fresh()
    listed(state, READERS[DISRUPTION_BUDGETS], [budget("5", controlled_by())], 5)
    assert state.cluster_state.count("podgroup") == 1
    state.changed(READERS[DISRUPTION_BUDGETS], [Change("MODIFIED", budget("6", []))], 6)
    assert state.cluster_state.count("podgroup") == 0
    assert state.cluster_state.count("budget") == 1


def test_one_watch_of_budgets_feeds_gangs_and_budgets_and_ends_both() -> None:
    spec = {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}

    def budget(name: str, version: str) -> kube.DisruptionBudget:
        meta = metadata(name, resourceVersion=version, ownerReferences=controlled_by())
        return decoded(kube.DisruptionBudget, {"metadata": meta, "spec": spec})

    def counts() -> tuple[int, int]:
        return state.cluster_state.count("podgroup"), state.cluster_state.count("budget")

    state = fresh()
    kinds = READERS[DISRUPTION_BUDGETS]
    assert listed(state, kinds, [budget("a", "5"), budget("b", "6"), budget("c", "7")], 7) == 6
    assert counts() == (3, 3)
    assert state.changed(kinds, [Change("DELETED", budget("a", "8"))], 8) == 2
    assert counts() == (2, 2)
    assert listed(state, kinds, [budget("b", "6")], 9) == 2
    assert counts() == (1, 1)
    assert state.absent(kinds) == 2
    assert counts() == (0, 0)


def test_what_cannot_be_read_is_counted_once_however_many_read_it() -> None:
    broken = undecodable(kube.DisruptionBudget, {"metadata": metadata(), "spec": "x"})
    state = fresh()
    listed(state, READERS[DISRUPTION_BUDGETS], [broken], 9)
    assert (state.unreadable, len(state.take_problems())) == (1, 1)


def test_a_kind_that_goes_takes_its_objects_along_and_may_come_back_older() -> None:
    group = decoded(PodGroup, {"metadata": metadata("g", resourceVersion="50")})
    state = fresh()
    listed(state, READERS[PODGROUPS_SIGS], [group], 60)
    assert state.served_dialects() == ("sigs",)
    assert state.absent(READERS[PODGROUPS_SIGS]) == 1
    assert state.served_dialects() == ()
    assert state.cluster_state.count("podgroup") == 0
    assert listed(state, READERS[PODGROUPS_SIGS], [], 40) == 0


def test_unreadable_messages_are_counted_reported_and_kept_with_their_reason() -> None:
    broken = Undecodable(
        metadata=kube.ObjectMeta(name="g", namespace="team", uid="u", resource_version="9"),
        error="Expected `int`, got `str` - at `$.spec.minMember`",
    )
    state = fresh()
    assert listed(state, READERS[PODGROUPS_VOLCANO], [broken], 9) == 1
    assert state.unreadable == 1
    (problem,) = state.take_problems()
    assert problem.startswith("podgroups.scheduling.volcano.sh team/g: Expected `int`")
    assert state.take_problems() == []


def test_a_flood_of_malformed_objects_does_not_flood_the_log() -> None:
    broken = [
        Undecodable(
            metadata=kube.ObjectMeta(name=f"g{i}", uid=f"u{i}", resource_version="9"), error="no"
        )
        for i in range(1000)
    ]
    state = fresh()
    listed(state, READERS[PODGROUPS_VOLCANO], broken, 9)
    assert state.unreadable == 1000
    assert len(state.take_problems()) == 20
