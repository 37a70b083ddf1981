"""One sample of every message about ProvisioningRequests. The rules are those of `samples`, which
takes these in.
"""

import msgspec

from shared.contracts.cluster import ProvisioningRequestChanges
from shared.contracts.decisions import Binding, Cycle, GangDecision
from shared.contracts.questions import RequestRefused
from shared.contracts.verdicts import PodSet, Provisioning, Verdict
from shared.model.reference_objects import ProvisioningRequest

_NAME = "tutti-uid-train-0123456789ab-2"

PROVISIONING_SAMPLES: tuple[msgspec.Struct, ...] = (
    ProvisioningRequestChanges(
        epoch=2,
        at_ms=1,
        changed=(
            ProvisioningRequest(
                uid="request-1",
                namespace="kubeflow",
                name=_NAME,
                resource_version=3,
                gang_id="uid-train",
                digest="0123456789ab",
                attempt=2,
                state="Accepted",
                reason="CapacityIsNotFound",
                message="Capacity is not found, CA will try to find it later.",
            ),
        ),
    ),
    GangDecision(
        gang_id="uid-train",
        gang="kubeflow/train",
        dialect="volcano",
        epoch=7,
        attempt=1,
        bindings=(Binding(uid="pod-3", namespace="kubeflow", name="train-0", node="n1"),),
        quorum=1,
        trace_id="0123456789abcdef0123456789abcdef",
        first_seen_ms=1,
        cycle=Cycle(cluster_seq=1, outcomes_seq=0, now_ms=2, configuration="c"),
        provisioning_request=_NAME,
        provisioning_class="check-capacity.autoscaling.x-k8s.io",
    ),
    Verdict(
        gang_id="uid-train",
        epoch=7,
        at_ms=4,
        dialect="volcano",
        namespace="kubeflow",
        name="train",
        uid="uid-train",
        phase="Inqueue",
        provisioning=Provisioning(
            request=_NAME,
            class_name="check-capacity.autoscaling.x-k8s.io",
            parameters=(("noRetry", "true"),),
            pod_sets=(PodSet(name="train-0", uid="pod-3", count=4),),
            obsolete=("tutti-uid-train-0123456789ab-1",),
        ),
    ),
    Verdict(
        gang_id="uid-train",
        epoch=7,
        at_ms=5,
        dialect="volcano",
        namespace="kubeflow",
        name="train",
        uid="uid-train",
        phase="Inqueue",
        provisioning=Provisioning(
            request=_NAME,
            class_name="check-capacity.autoscaling.x-k8s.io",
            pod_sets=(PodSet(name="train-0", uid="pod-3", count=4),),
            repeats=2,
            refusal="403 Forbidden: podtemplates is forbidden: exceeded quota",
        ),
    ),
    RequestRefused(
        gang_id="uid-train",
        request=_NAME,
        message="403 Forbidden: podtemplates is forbidden: exceeded quota",
    ),
)
