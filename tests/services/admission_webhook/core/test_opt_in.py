"""Pods of namespaces that opted in: which get a scheduler name of Tutti, and that nothing else
changes.
"""

from typing import Any

import pytest

from services.admission_webhook.core.opt_in import take_owned_pod, take_pod
from shared.admission.review import decode_review
from shared.dialects import discovery
from shared.dialects.pod_vocabulary import PodVocabulary, pod_vocabulary
from shared.dialects.protocol import Dialect, GroupReference, Scheduler
from shared.dialects.scheduler_choice import name_for_pods
from tests.services.admission_webhook.reviews import NAMES, Object, a_pod, review

GROUP = "scheduling.k8s.io/group-name"
LABEL = "example.com/gang"
EXAMPLE = Dialect(
    name="example",
    references=(
        GroupReference(place="label", key=LABEL, declared_by="Example"),
        GroupReference(
            place="label", key="example.com/part", declared_by="Example", names_group=False
        ),
    ),
    schedulers=(Scheduler(name="example-scheduler", by_default=False),),
)


@pytest.fixture
def with_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialect whose scheduler Tutti does not serve by default."""
    module = "shared.admission.gang_declarations"
    vocabulary = PodVocabulary((*discovery.by_precedence(), EXAMPLE))
    monkeypatch.setattr(f"{module}.pod_vocabulary", lambda: vocabulary)


def patch_of(pod: Object, names: tuple[str, ...] = NAMES, **request: Any) -> list[tuple[str, str]]:
    verdict = take_pod(decode_review(review(pod, **request)), names)
    assert verdict.allowed
    assert verdict.warnings == ()
    return [(one.path, one.value) for one in verdict.patch]


def labelled(scheduler: str, **labels: str) -> Object:
    pod = a_pod(scheduler)
    pod["metadata"]["labels"] = {f"example.com/{key}": value for key, value in labels.items()}
    return pod


def test_a_pod_of_a_gang_gets_our_name_and_nothing_else() -> None:
    expected = [("/spec/schedulerName", "tutti")]
    assert patch_of(a_pod("default-scheduler", {GROUP: "g"})) == expected


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("default-scheduler"),
        a_pod("default-scheduler", {GROUP: ""}),
        a_pod("default-scheduler", {"scheduling.k8s.io/group-min-member": "2"}),
        a_pod("another", {GROUP: "g"}),
        a_pod("volcano", {GROUP: "g"}),
        a_pod("tutti", {GROUP: "g"}),
    ],
    ids=["no gang", "no name", "a size only", "another scheduler", "served", "ours"],
)
def test_a_pod_is_left_alone(pod: Object) -> None:
    assert patch_of(pod) == []


def test_pods_of_kube_system_updates_and_subresources_are_left_alone() -> None:
    pod = a_pod("default-scheduler", {GROUP: "g"})
    assert patch_of(pod, namespace="kube-system") == []
    assert patch_of(pod, old=pod) == []
    assert patch_of(pod, subResource="ephemeralcontainers") == []


@pytest.mark.usefixtures("with_example")
def test_the_scheduler_name_of_the_pods_own_dialect_gives_way() -> None:
    ours = [("/spec/schedulerName", "tutti")]
    assert patch_of(labelled("example-scheduler", gang="g")) == ours
    assert patch_of(labelled("default-scheduler", gang="g")) == ours
    assert patch_of(labelled("kai-scheduler", gang="g")) == []
    assert patch_of(a_pod("example-scheduler", {GROUP: "g"})) == [], "another dialect's pod"
    assert patch_of(labelled("example-scheduler", part="p")) == [], "a part is no gang"


def test_a_scheduler_name_that_belongs_to_another_scheduler_is_not_taken_by_its_annotation() -> (
    None
):
    assert patch_of(a_pod("volcano", {GROUP: "g"}), ("tutti",)) == []


def test_without_our_own_name_the_first_one_is_given() -> None:
    assert name_for_pods(("volcano", "tutti")) == "tutti"
    pod = a_pod("default-scheduler", {GROUP: "g"})
    assert patch_of(pod, ("second", "third")) == [("/spec/schedulerName", "second")]


def owned(
    scheduler: str = "default-scheduler", owner: tuple[str, str] = ("batch/v1", "Job"), **marks: Any
) -> Object:
    """A pod that declares no gang, with this controller."""
    pod = a_pod(scheduler)
    reference = {"name": "o", "uid": "o", "controller": True}
    above = {**reference, "apiVersion": owner[0], "kind": owner[1]}
    pod["metadata"] |= {"ownerReferences": [above], **marks}
    return pod


def owned_patch_of(pod: Object, names: tuple[str, ...] = NAMES, **request: Any) -> list[str]:
    verdict = take_owned_pod(decode_review(review(pod, **request)), names)
    assert verdict.allowed
    return [str(one.value) for one in verdict.patch]


OF_LWS = {"leaderworkerset.sigs.k8s.io/group-index": "0"}


@pytest.mark.parametrize(
    "pod",
    [
        owned(),
        owned(owner=("batch/v2", "Job")),
        owned(owner=("ray.io/v1", "RayCluster")),
        owned(owner=("v1", "Pod")),
        owned(owner=("apps/v1", "StatefulSet"), labels=OF_LWS),
    ],
    ids=["Job", "another version", "an operator's object", "a Spark driver", "LeaderWorkerSet"],
)
def test_a_pod_below_an_operators_object_gets_our_name(pod: Object) -> None:
    assert owned_patch_of(pod) == ["tutti"]


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("default-scheduler"),
        owned(owner=("apps/v1", "ReplicaSet")),
        owned(owner=("example.com/v1", "Job")),
        owned("volcano"),
        owned("elsewhere"),
        owned(annotations={GROUP: "g"}),
    ],
    ids=["bare", "a Deployment's", "another API", "served", "another", "of a gang"],
)
def test_another_pod_of_such_a_namespace_is_left_alone(pod: Object) -> None:
    assert owned_patch_of(pod) == []


def test_a_pod_with_the_mark_of_a_gang_that_no_dialect_reads_is_left_alone() -> None:
    unread = next(one for one in pod_vocabulary().references.unread if one.place == "label")
    assert owned_patch_of(owned(labels={unread.key: "g"})) == []


def test_owned_pods_are_left_alone_in_kube_system_and_where_default_scheduler_is_served() -> None:
    assert owned_patch_of(owned(), namespace="kube-system") == []
    assert owned_patch_of(owned(), old=owned()) == []
    assert owned_patch_of(owned(), ("tutti", "default-scheduler")) == []
    assert owned_patch_of(owned(ownerReferences="x")) == [], "the API server refuses it"


def test_annotations_of_the_wrong_type_are_no_crash() -> None:
    pod = a_pod("default-scheduler")
    for wrong in ({GROUP: 5}, ["a"], "x"):
        pod["metadata"]["annotations"] = wrong
        assert patch_of(pod) == []
