"""What follows from what was seen, where a cluster of our own cannot show it."""

from typing import Any

import msgspec
import pytest

from shared.contracts.codec import encode
from shared.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    PODGROUPS_COSCHEDULING,
    PODS,
)
from shared.model.devices import ResourceClaim
from shared.model.objects import GANG_PREFIX, Owner, Pod, PodGroup, Shape
from tests.support.golden import Golden
from tutti.manifests.crds import default_names, manifests
from tutti.migrate.cluster_facts import ClusterFacts
from tutti.migrate.command import judge
from tutti.migrate.comparison import Finding, gang_findings, installation_findings, object_findings
from tutti.up.other_schedulers import OtherScheduler

NAMES = ("volcano",)


def seen(**fields: Any) -> ClusterFacts:
    return msgspec.structs.replace(ClusterFacts(scheduler_names=NAMES, objects={}), **fields)


def pod(name: str, *, node: str = "", **fields: Any) -> Pod:
    plain = Pod(
        uid=f"uid-{name}",
        namespace="team",
        name=name,
        resource_version=1,
        shape=encode(Shape()),
        ours=True,
        scheduler_name="volcano",
        group_name="train",
        node=node,
    )
    return msgspec.structs.replace(plain, **fields)


GROUP = PodGroup(
    uid="g", dialect="volcano", namespace="team", name="train", resource_version=1, min_member=2
)
OWNER = Owner(api_version="batch.volcano.sh/v1alpha1", kind="Job", name="train", uid="job")


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ((pod("a", node="n", phase="Running"), pod("b")), "treats it as started"),
        ((pod("a", node="n"),), "only 1 of its pods exist"),
        ((pod("a", node="n"), pod("b")), "1 bound pods have no controller"),
        (
            (pod("a", node="n", owner=OWNER), pod("b", owner=OWNER)),
            "releases no pod of the gang before",
        ),
    ],
    ids=["running", "incomplete", "bare", "of a Job"],
)
def test_a_gang_bound_in_part_is_reported_with_what_follows(
    pods: tuple[Pod, ...], words: str
) -> None:
    (found,) = gang_findings(seen(pods=pods, groups=(GROUP,)))
    assert found.level == "changes"
    assert words in found.message


def test_gangs_that_are_bound_whole_or_not_at_all_are_not_reported() -> None:
    whole = (pod("a", node="n"), pod("b", node="n"))
    assert not list(gang_findings(seen(pods=whole, groups=(GROUP,))))
    assert not list(gang_findings(seen(pods=(pod("a"), pod("b")), groups=(GROUP,))))


def test_a_claim_for_more_than_whole_devices_blocks_until_it_is_allocated() -> None:
    claim = ResourceClaim(
        uid="c",
        namespace="team",
        name="slice",
        resource_version=1,
        unsupported=("spec.devices.constraints",),
    )
    asking = (pod("a", shape=encode(Shape(device_claims=("slice",)))),)
    (found,) = gang_findings(seen(pods=asking, claims=(claim,)))
    assert (found.level, found.what) == ("blocks", "ResourceClaim team/slice")
    allocated = msgspec.structs.replace(claim, allocated=(("driver", "pool", "d0"),))
    assert not list(gang_findings(seen(pods=asking, claims=(allocated,))))


def test_groups_of_coscheduling_are_read_and_other_marks_are_not() -> None:
    group = {"metadata": {"name": "g", "namespace": "team"}}
    marks = {"scheduling.x-k8s.io/pod-group": "g", "pod-group.scheduling.sigs.k8s.io": "g"}
    labelled = {"metadata": {"name": "p", "labels": marks}}
    objects = {PODGROUPS_COSCHEDULING: [group], PODS: [labelled]}
    found = list(object_findings(seen(objects=objects)))
    assert [(one.level, one.what) for one in found] == [
        ("changes", "pod-group.scheduling.sigs.k8s.io"),
        ("tells", "podgroups.scheduling.x-k8s.io"),
    ]


def crd(manifest: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": manifest["metadata"]["name"]},
        "spec": {**manifest["spec"], **spec},
        "status": {"storedVersions": ["v0"]},
    }


def crds(*there: dict[str, Any]) -> list[Finding]:
    return list(installation_findings(seen(objects={CUSTOM_RESOURCE_DEFINITIONS: list(there)})))


def test_a_crd_without_the_version_that_tutti_reads_blocks() -> None:
    first, *others = manifests()
    old = {"name": "v0", "served": True}
    found = crds(crd(first, versions=[old]), *(crd(one) for one in others))
    (blocking,) = [one for one in found if one.level == "blocks"]
    assert blocking.what == first["metadata"]["name"]
    assert "serves v0" in blocking.message


def test_a_crd_of_another_product_stays_and_one_that_is_missing_is_to_be_made() -> None:
    first, second, *_ = manifests()
    plain = {**crd(second), "status": {}}
    old, kept, missing = crds(crd(first), plain)
    assert (missing.level, missing.what) == ("step", f"{len(default_names()) - 2} CRDs")
    assert (kept.level, kept.what) == ("tells", "1 CRDs")
    assert "does not change CRDs of other products" in kept.message
    assert "stored as v0" in old.message


def test_webhooks_of_another_scheduler_that_fail_closed_are_to_be_deleted() -> None:
    theirs = {
        "metadata": {"name": "volcano-admission-service-jobs-mutate"},
        "webhooks": [{"name": "mutatejob.volcano.sh", "failurePolicy": "Fail"}],
    }
    other = {"metadata": {"name": "x"}, "webhooks": [{"name": "x.example.org"}]}
    objects = {MUTATING_WEBHOOKS: [theirs, other], CUSTOM_RESOURCE_DEFINITIONS: []}
    found = [one for one in installation_findings(seen(objects=objects)) if one.topic == "webhook"]
    assert [one.level for one in found] == ["step"]
    assert "refuses its requests" in found[0].message


def test_each_scheduler_name_is_reported_with_the_scheduler_that_serves_it() -> None:
    other = OtherScheduler(
        holding="name", name="volcano", description="Lease a/volcano (held by x)"
    )
    pods = (pod("a"), pod("b", node="n"), pod("c", scheduler_name="other", ours=False))
    about_crds, *found = installation_findings(seen(pods=pods, others=(other,)))
    assert about_crds.topic == "crd"
    assert [(one.topic, one.what) for one in found] == [
        ("scheduler name", "other"),
        ("scheduler name", "volcano"),
        ("rival", "scheduler"),
    ]
    assert "Tutti would not serve it" in found[0].message
    assert "2 pods, 1 of them wait; served by Lease a/volcano" in found[1].message


def test_a_running_tutti_serves_the_names_of_the_check() -> None:
    other = OtherScheduler(holding="suite", description="Lease tutti/tutti-up (held by x)")
    pods = (pod("a"), pod("c", scheduler_name="other", ours=False))
    _, foreign, ours, _ = installation_findings(seen(pods=pods, others=(other,)))
    assert "served by no known scheduler" in foreign.message
    assert "served by Lease tutti/tutti-up (held by x)" in ours.message


def test_blocking_findings_come_first_and_unreadable_kinds_are_reported(golden: Golden) -> None:
    marked = pod("a", shape=encode(Shape(unsupported=(f"{GANG_PREFIX}not read here",))))
    check = judge(seen(pods=(marked,), unreadable=("no right to list pods",)), "https://h")
    assert check.blocked
    assert check.findings[0].topic == "gang"
    golden(check.findings[-1].message)
