"""References by which pods declare a gang: each is read by a dialect, or keeps its pod unbound."""

import re
from typing import Any

import pytest

from shared.contracts import annotations
from shared.dialects.discovery import by_precedence, dialect
from shared.dialects.group_references import ReferenceTable, implied_group
from shared.dialects.native import DIALECT as NATIVE
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import Dialect, GroupReference, Membership, PodKeys
from shared.kube import objects as kube
from shared.model.objects import GANG_PREFIX
from tests.shared.dialects.reading import CONTEXT, decoded, pod, shape_of

UNREAD = pod_vocabulary().references.unread
FIELDS = {
    "spec.workloadRef": {"workloadRef": {"name": "g", "podGroup": "workers"}},
}


def referring(reference: GroupReference, **more: Any) -> dict[str, Any]:
    """The arguments of `pod` for one with this reference, which names "g"."""
    notes = more.pop("annotations", {})
    if reference.place == "field":
        return {"spec": FIELDS[reference.key], "annotations": notes, **more}
    if reference.place == "label":
        return {"labels": {reference.key: "g"}, "annotations": notes, **more}
    return {"annotations": {reference.key: "g", **notes}, **more}


def unsupported(**given: Any) -> tuple[str, ...]:
    """What of the pod is not judged."""
    spec = {"schedulerName": "tutti", **given.pop("spec", {})}
    return shape_of(pod(spec, **given)).unsupported


@pytest.mark.parametrize("reference", UNREAD, ids=lambda reference: reference.title)
def test_a_pod_with_a_reference_that_no_dialect_reads_is_refused(reference: GroupReference) -> None:
    (refused,) = unsupported(**referring(reference))
    assert refused.startswith(GANG_PREFIX)
    assert reference.title in refused
    assert reference.declared_by in refused
    assert annotations.GROUP_NAME in refused, "the remedy is named"


@pytest.mark.parametrize("reference", UNREAD, ids=lambda reference: reference.title)
def test_the_same_gang_named_in_a_reference_that_is_read_is_no_objection(
    reference: GroupReference,
) -> None:
    refused = unsupported(**referring(reference, annotations={annotations.GROUP_NAME: "g"}))
    assert bool(refused) is not reference.names_group


@pytest.mark.parametrize(
    "reference", [one for one in UNREAD if one.names_group], ids=lambda reference: reference.title
)
def test_a_pod_that_names_two_gangs_is_refused(reference: GroupReference) -> None:
    (refused,) = unsupported(**referring(reference, annotations={annotations.GROUP_NAME: "other"}))
    assert "name two gangs" in refused
    assert reference.title in refused


def test_a_group_that_was_made_for_a_bare_pod_gives_way_to_the_pods_own() -> None:
    """A dialect may be served only after the controller has made its group, and named it."""
    found = labelled(group="g")
    found.metadata.annotations[annotations.GROUP_NAME] = "podgroup-u"
    by_name = dialect("group_name")
    table = ReferenceTable((by_name, Dialect(name="late", references=(KNOWN,))), ())
    assert table.read(found.metadata, found.spec, None) == (Membership(group_name="g"), ())
    before = ReferenceTable((by_name,), (KNOWN,))
    joined, (refused,) = before.read(found.metadata, found.spec, None)
    assert joined == Membership(group_name="podgroup-u")
    assert "which is not read here" in refused


@pytest.mark.parametrize("uid", ["a b", "..", "A", "x" * 5_000, "ü", "5f0e8d5e-9d0b-4c8b-8f5e"])
def test_the_group_of_an_owners_bare_pods_has_a_valid_name_whatever_the_owners_uid(
    uid: str,
) -> None:
    owner = kube.OwnerReference(api_version="v1", kind="Job", name="j", uid=uid, controller=True)
    name = implied_group(kube.ObjectMeta(name="p", owner_references=(owner,)))
    assert re.fullmatch(r"podgroup-[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name)


def test_pods_of_other_schedulers_are_not_looked_at() -> None:
    label = {UNREAD[0].key: "g"}
    assert unsupported(spec={"schedulerName": "default-scheduler"}, labels=label) == ()


@pytest.mark.parametrize(
    "given",
    [
        {"labels": {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "high"}},
        {"labels": {"kai.scheduler/queue": "team", "spark-app-selector": "spark-1"}},
        {"labels": {"applicationId": "a", "yunikorn.apache.org/queue": "root.a"}},
        {"annotations": {"yunikorn.apache.org/app-id": "a"}},
        {"labels": {"scheduling.x-k8s.io/pod-group": ""}},
    ],
)
def test_a_queue_or_an_application_declares_no_gang(given: dict[str, Any]) -> None:
    assert unsupported(**given) == ()


def test_a_reference_of_a_later_version_is_refused_as_well() -> None:
    (refused,) = unsupported(spec={"schedulingGroup": {"compositePodGroupName": "g"}})
    assert "spec.schedulingGroup" in refused


def labelled(**labels: str) -> kube.Pod:
    """A pod with these labels."""
    meta = {"name": "p", "namespace": "t", "uid": "u", "labels": labels}
    return decoded(kube.Pod, {"metadata": meta})


KNOWN = GroupReference(place="label", key="group", declared_by="Example")


def test_a_reference_counts_as_read_only_while_a_kind_of_its_dialect_is_served() -> None:
    example = Dialect(name="example", kinds=NATIVE.kinds[:1], references=(KNOWN,))
    table = ReferenceTable((example,), (KNOWN,))
    found = labelled(group="g")
    joined = (Membership(group_name="g"), ())
    assert table.unread == ()
    assert table.read(found.metadata, found.spec, {"example"}) == joined
    assert table.read(found.metadata, found.spec, None) == joined
    membership, objections = table.read(found.metadata, found.spec, set())
    assert membership is None
    assert len(objections) == 1


def test_a_dialect_without_kinds_is_always_read() -> None:
    table = ReferenceTable((Dialect(name="example", references=(KNOWN,)),), ())
    found = labelled(group="g")
    assert table.read(found.metadata, found.spec, ()) == (Membership(group_name="g"), ())


def test_the_first_dialect_counts_and_another_gang_is_an_objection() -> None:
    first = Dialect(
        name="first",
        references=(KNOWN,),
        membership=lambda metadata: Membership(
            group_name=metadata.labels["group"].upper(), min_member=3
        ),
    )
    part = GroupReference(place="label", key="part", declared_by="Other", names_group=False)
    name = GroupReference(place="label", key="name", declared_by="Other")
    table = ReferenceTable((first, Dialect(name="other", references=(part, name))), ())
    expected = Membership(group_name="G", min_member=3)
    same = labelled(group="g", name="G", part="p")
    assert table.read(same.metadata, same.spec, ()) == (expected, ())
    other = labelled(group="g", name="h")
    membership, (objection,) = table.read(other.metadata, other.spec, ())
    assert membership == expected
    assert objection.startswith("label group and label name (Other) name two gangs")


def test_keys_of_dialects_are_tried_by_precedence() -> None:
    order = [found.name for found in by_precedence()]
    assert order == [
        "kubernetes",
        "kubernetes_composite",
        "group_name",
        "volcano",
        "incubator",
        "sigs",
        "coscheduling",
        "koordinator",
        "kubeflow",
        "kuberay",
        "spark",
        "jobset",
        "leader_worker_set",
        "native",
        "grove",
        "kai",
        "kueue",
        "yunikorn",
        "cluster_autoscaler",
        "disruption_budget",
    ]
    found = labelled(a="1", b="2").metadata
    assert PodKeys(labels=("b", "a")).read(found) == "2"
    assert PodKeys(annotations=("a",)).read(found) is None


def test_members_of_one_gang_share_a_shape_and_gangs_do_too() -> None:
    shapes = {
        pod({"schedulerName": "tutti"}, labels={UNREAD[0].key: name}, context=CONTEXT).shape
        for name in ("a", "b")
    }
    assert len(shapes) == 1


def test_all_declarations_of_a_pod_are_listed_by_precedence_with_their_dialects() -> None:
    example = Dialect(
        name="example",
        references=(GroupReference(place="label", key="example.com/gang", declared_by="Example"),),
    )
    table = ReferenceTable((*by_precedence(), example))
    unread = next(one for one in table.unread if one.place == "label" and one.names_group)
    labels = {"example.com/gang": "b", unread.key: "c"}
    given = kube.Pod(
        metadata=kube.ObjectMeta(annotations={annotations.GROUP_NAME: "a"}, labels=labels)
    )
    found = table.declarations(given.metadata, given.spec, None)
    assert [(one.value, one.dialect and one.dialect.name) for one in found] == [
        ("a", "group_name"),
        ("b", "example"),
        ("c", None),
    ]
    named = [one.membership and one.membership.group_name for one in found]
    assert named == ["a", "b", None]
    assert table.declarations(kube.ObjectMeta(), kube.PodSpec(), None) == ()
