"""Groups of bare pods that turned out to have a group of their own, whose CRD came later."""

from typing import Any

import msgspec
import pytest

from services.controller.core.statuses.annotation import annotation_of
from services.controller.core.workloads import bare_pod_of, declares_another_gang, is_empty
from shared.contracts.verdicts import Verdict
from shared.kinds.podgroup import PodGroup
from shared.kube.objects import Pod

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
VERDICT = Verdict(
    gang_id="g",
    epoch=1,
    at_ms=1,
    dialect="volcano",
    namespace="team",
    name="podgroup-u",
    uid="group",
    phase="Pending",
)


def a_group(verdict: Verdict | str = "", name: str = "podgroup-u", **owner: Any) -> PodGroup:
    text = verdict if isinstance(verdict, str) else annotation_of(verdict)
    metadata = {
        "name": name,
        "uid": "group",
        "annotations": {"tutti.dev/verdict": text},
        "ownerReferences": [{**OWNER, **owner}],
    }
    return msgspec.convert({"metadata": metadata}, PodGroup)


def test_a_group_that_was_made_for_a_bare_pod_is_named_after_it() -> None:
    assert bare_pod_of(a_group()) == "p"
    assert bare_pod_of(a_group(name="own")) == ""
    assert bare_pod_of(a_group(kind="Job", apiVersion="batch/v1")) == ""


@pytest.mark.parametrize(
    ("verdict", "empty"),
    [
        (VERDICT, True),
        (msgspec.structs.replace(VERDICT, members=1), False),
        (msgspec.structs.replace(VERDICT, phase="Running"), False),
        (msgspec.structs.replace(VERDICT, uid="of an earlier group"), False),
        ("", False),
        ("{}", False),
    ],
)
def test_a_group_is_empty_when_the_planner_says_so(verdict: Verdict | str, empty: bool) -> None:
    assert is_empty(a_group(verdict)) == empty


def test_a_pods_own_reference_is_another_gang_than_the_one_that_was_made_for_it() -> None:
    annotations = {"scheduling.k8s.io/group-name": "podgroup-u"}
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    both = msgspec.convert({"metadata": {"annotations": annotations, "labels": labels}}, Pod)
    one = msgspec.convert({"metadata": {"annotations": annotations}}, Pod)
    assert declares_another_gang(both, "podgroup-u")
    assert not declares_another_gang(one, "podgroup-u")
