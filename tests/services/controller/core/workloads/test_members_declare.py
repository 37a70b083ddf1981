"""Groups of bare pods follow what their members declare on themselves."""

from typing import Any

import msgspec
import pytest

from services.controller.core.workloads import leaves_queue, members_patch, queue_patch, upkeep
from shared.dialects.workload_sizes import Workload
from shared.kinds.podgroup import PodGroup
from tests.services.controller.core.samples import make_verdict

MINIMUM = "scheduling.k8s.io/group-min-member"
SUPERSEDED = "tutti.dev/superseded-minimum"


def a_group(
    minimum: int, members: int = 0, superseded: str = "", queue: str = "", uid: str = "group"
) -> PodGroup:
    """`members`, `queue`: what the verdict on it reports of its members."""
    verdict = make_verdict(uid="group", members_minimum=members, members_queue=queue)
    notes = {"tutti.dev/verdict": msgspec.json.encode(verdict).decode()}
    if superseded:
        notes[SUPERSEDED] = superseded
    amounts = {"count/pods": str(minimum), "pods": str(minimum)}
    spec = {"minMember": minimum, "queue": "one", "minResources": amounts}
    metadata = {"name": "podgroup-u", "uid": uid, "annotations": notes}
    return msgspec.convert({"metadata": metadata, "spec": spec}, PodGroup)


def a_workload(template: int, replicas: int = 8, owner: int = 0) -> Workload:
    """`template`: the minimum on its template, `owner`: on itself; 0: none."""
    of_pods = {MINIMUM: str(template)} if template else {}
    of_owner = {"scheduling.volcano.sh/group-min-member": str(owner)} if owner else {}
    raw = {
        "metadata": {"uid": "u", "annotations": of_owner},
        "spec": {"replicas": replicas, "template": {"metadata": {"annotations": of_pods}}},
        "status": {"replicas": replicas},
    }
    return msgspec.convert(raw, Workload)


def after(group: PodGroup, workload: Workload, members: int) -> tuple[int, str]:
    """The minimum and the superseded declaration once `upkeep` writes nothing any more."""
    minimum = group.spec.min_member
    superseded = group.metadata.annotations.get(SUPERSEDED, "")
    for _ in range(3):
        patch = upkeep(a_group(minimum, members, superseded), "ReplicaSet", workload)
        if patch is None:
            return minimum, superseded
        assert patch != "remove"
        minimum = patch.get("spec", {}).get("minMember", minimum)
        notes: dict[str, Any] = patch.get("metadata", {}).get("annotations", {})
        superseded = notes.get(SUPERSEDED, superseded) or ""
    raise AssertionError("it is written for ever")


def test_of_template_and_members_the_declaration_that_changed_last_counts() -> None:
    group, workload = a_group(8, 8), a_workload(8)
    assert after(group, workload, 8) == (8, "")
    # All pods are patched.
    assert after(group, workload, 4) == (4, "template=8")
    group = a_group(4, 4, "template=8")
    # They are patched again, up.
    assert after(group, workload, 6) == (6, "template=8")
    # The template is changed after them, and does not change them.
    assert after(group, a_workload(2), 4) == (2, "members=4")
    group = a_group(2, 4, "members=4")
    # Pods of the new template replace the old ones.
    assert after(group, a_workload(2), 2) == (2, "")
    # Pods of the old template replace the patched ones.
    assert after(a_group(4, 4, "template=8"), workload, 8) == (8, "")


@pytest.mark.parametrize(("template", "size"), [(4, 4), (8, 8)], ids=["lowered", "raised"])
def test_a_changed_template_counts_before_its_pods_exist(template: int, size: int) -> None:
    old = 12 - template
    assert after(a_group(old, old), a_workload(template), old) == (size, f"members={old}")


def test_the_number_of_replicas_limits_what_members_and_template_declare() -> None:
    group = a_group(4, 8)
    assert after(group, a_workload(3, replicas=4), 8) == (3, "members=8")
    assert after(group, a_workload(8, replicas=4), 6) == (4, "template=8")


def test_the_minimum_on_the_owner_has_precedence_over_what_members_declare() -> None:
    workload = a_workload(8, owner=5)
    assert after(a_group(5, 8), workload, 4)[0] == 5
    assert upkeep(a_group(5, 4, "members=4"), "DaemonSet", workload) is None


def test_members_count_where_the_template_declares_nothing_or_is_not_read() -> None:
    assert after(a_group(1, 4), a_workload(0), 4)[0] == 4
    assert members_patch(a_group(8, 4), "Workers", []) == {
        "spec": {"minMember": 4, "minResources": {"count/pods": "4", "pods": "4"}}
    }
    assert members_patch(a_group(4, 4), "Workers", []) is None
    assert members_patch(a_group(4, 0), "Workers", []) is None


def test_a_group_of_an_owner_without_a_known_template_gets_the_settings_above_its_pods() -> None:
    hold, disturb = "tutti.dev/hold-seconds", "tutti.dev/do-not-disrupt"
    write = members_patch(a_group(1), "MPIJob", [{hold: "7", "other": "o"}, {disturb: "true"}])
    notes = {hold: "7", disturb: "true", "tutti.dev/inherited": f"{disturb},{hold}"}
    assert write == {"metadata": {"annotations": notes}}


def test_a_job_may_lower_its_gang_to_one_pod() -> None:
    workload = msgspec.convert({"metadata": {"uid": "u"}, "spec": {"parallelism": 4}}, Workload)
    patch = upkeep(a_group(4, 1), "Job", workload)
    assert isinstance(patch, dict)
    assert patch["spec"]["minMember"] == 1


def test_a_group_follows_its_members_into_their_queue() -> None:
    assert queue_patch(a_group(4, queue="two")) == {"spec": {"queue": "two"}}
    assert queue_patch(a_group(4, queue="one")) is None
    assert queue_patch(a_group(4)) is None


def test_a_group_leaves_the_queue_that_neither_its_template_nor_a_member_names_any_more() -> None:
    name = "scheduling.volcano.sh/queue-name"

    def group(queue: str, origins: str = name) -> PodGroup:
        found = a_group(1, queue=queue)
        notes = {**found.metadata.annotations, "tutti.dev/inherited": origins}
        metadata = msgspec.structs.replace(found.metadata, annotations=notes)
        return msgspec.structs.replace(found, metadata=metadata)

    plain = a_workload(0)
    template = {"metadata": {"annotations": {name: "one"}}}
    naming = msgspec.convert(
        {"metadata": {"uid": "u"}, "spec": {"template": template}, "status": {"replicas": 1}},
        Workload,
    )
    assert leaves_queue(group(""), plain)
    assert not leaves_queue(group("one"), plain), "old pods are still in it"
    assert not leaves_queue(group(""), naming)
    assert not leaves_queue(group("", ""), plain), "the namespace, or a user, chose it"
    assert upkeep(group("one"), "StatefulSet", plain) is None
    assert upkeep(group("one"), "StatefulSet", naming) is None
    assert upkeep(group(""), "StatefulSet", plain) == {
        "metadata": {"annotations": {"tutti.dev/inherited": None}}
    }


def test_the_verdict_on_another_group_of_this_name_has_no_effect() -> None:
    group = a_group(8, 4, queue="two", uid="another")
    assert queue_patch(group) is None
    assert members_patch(group, "Workers", []) is None
    assert upkeep(group, "ReplicaSet", a_workload(8)) is None
