"""One sample of every message, as Tutti wrote it when the golden file was made.

Add a sample with each new message, and one more where a message grows; never change one that is
committed: a new meaning gets a new tag.
"""

import msgspec

from shared.contracts.cluster import (
    Gone,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    PriorityClassChanges,
    QueueChanges,
    SnapshotPage,
    SnapshotRequest,
    SnapshotUnavailable,
    StreamOpened,
    Synced,
)
from shared.contracts.decisions import (
    Binding,
    Checkpoint,
    Cycle,
    EpochOpened,
    EvictionDecision,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteOpened,
    OpenDecision,
    OpenGang,
    Victim,
)
from shared.contracts.observing import GangObserved, Observation, ObservationRequest
from shared.contracts.outcomes import DecisionClaimed, Member, Outcome
from shared.contracts.questions import (
    FitAnswer,
    FitRequest,
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    LedgerRequest,
    ServiceStatus,
    StatusRequest,
)
from shared.contracts.verdicts import Condition, PodRef, Reason, ShapeReport, Verdict, Why
from shared.model.objects import (
    HostPort,
    Node,
    Owner,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
    Requirement,
    SelectorTerm,
    Shape,
    Taint,
    Toleration,
)
from tests.shared.contracts.device_samples import DEVICE_SAMPLES
from tests.shared.contracts.provisioning_samples import PROVISIONING_SAMPLES
from tests.shared.contracts.surrounding_samples import SURROUNDING_SAMPLES

_SHAPE = Shape(
    requests=(("cpu", 1000), ("nvidia.com/gpu", 1), ("pods", 1)),
    node_selector=(("gpu", "1060g1"),),
    node_affinity=(
        SelectorTerm(
            expressions=(Requirement(key="zone", operator="In", values=("a", "b")),),
            fields=(Requirement(key="metadata.name", operator="In", values=("k8s-g1",)),),
        ),
    ),
    tolerations=(Toleration(key="gpu", operator="Exists", effect="NoSchedule"),),
    host_ports=(HostPort(port=2222),),
    unsupported=("spec.resourceClaims",),
)
_OWNER = Owner(api_version="kubeflow.org/v1", kind="TFJob", name="job-1", uid="owner-1")
_POD = Pod(
    uid="pod-1",
    namespace="kubeflow",
    name="job-1-worker-0",
    resource_version=7,
    created_ms=1_700_000_000_000,
    shape=msgspec.msgpack.encode(_SHAPE),
    ours=True,
    scheduler_name="kube-batch",
    group_name="job-1",
    role="worker",
    index=0,
    owner=_OWNER,
)
_GROUP = PodGroup(
    uid="group-1",
    dialect="incubator",
    namespace="kubeflow",
    name="job-1",
    resource_version=6,
    min_member=4,
    min_task_member=(("worker", 3),),
    min_resources=(("cpu", 4000),),
    queue="default",
    owner=_OWNER,
)
_SYNCED = Synced(
    epoch=2, at_ms=3, watcher="watcher-0", resource_versions=(("pods", 9),), dialects=("volcano",)
)
_CYCLE = Cycle(cluster_seq=11, outcomes_seq=12, now_ms=13, configuration="digest")
_BINDING = Binding(uid="pod-1", namespace="kubeflow", name="job-1-worker-0", node="k8s-g1")
_DECISION = GangDecision(
    gang_id="group-1",
    gang="kubeflow/job-1",
    dialect="incubator",
    epoch=5,
    attempt=1,
    bindings=(_BINDING,),
    quorum=1,
    preflight=True,
    why="first of its queue",
    trace_id="0" * 32,
    first_seen_ms=1,
    cycle=_CYCLE,
)
_HOLD = NoteOpened(
    gang_id="group-1",
    epoch=5,
    kind="hold",
    at_ms=1,
    until_ms=60_001,
    reason="MemberFailed",
    decision_seq=9,
    pod_uids=("pod-1",),
)

SAMPLES: tuple[msgspec.Struct, ...] = (
    NodeChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Node(
                uid="node-1",
                name="k8s-g1",
                resource_version=4,
                labels=(("gpu", "1060g1"),),
                allocatable=(("cpu", 4000), ("memory", 1 << 34), ("pods", 110)),
                taints=(Taint(key="gpu", effect="NoSchedule"),),
            ),
        ),
    ),
    PodChanges(epoch=2, at_ms=1, changed=(_POD,), removed=(Gone(uid="pod-0", resource_version=5),)),
    PodGroupChanges(epoch=2, at_ms=1, changed=(_GROUP,)),
    QueueChanges(
        epoch=2,
        at_ms=1,
        changed=(
            Queue(
                uid="queue-1",
                dialect="volcano",
                name="default",
                resource_version=1,
                capability=(("cpu", 16_000),),
                state="Open",
            ),
        ),
    ),
    PriorityClassChanges(
        epoch=2,
        at_ms=1,
        changed=(PriorityClass(uid="pc-1", name="high", resource_version=1, value=1000),),
    ),
    _SYNCED,
    StreamOpened(stream="CLUSTER", generation="a1", at_ms=1),
    SnapshotRequest(snapshot="s1", page=1, kinds=("pod",)),
    SnapshotPage(
        snapshot="s1",
        page=0,
        pages=1,
        epoch=2,
        cluster_seq=10,
        synced=_SYNCED,
        records=(PodChanges(epoch=2, at_ms=1, changed=(_POD,)),),
    ),
    SnapshotUnavailable(reason="not synced"),
    _DECISION,
    EvictionDecision(
        gang_id="group-1",
        gang="kubeflow/job-1",
        epoch=5,
        attempt=2,
        victims=(Victim(uid="pod-2", namespace="kubeflow", name="x"),),
        via="delete",
        reason="GangReleased",
        trace_id="1" * 32,
        cycle=_CYCLE,
    ),
    EpochOpened(epoch=5, planner="gang-planner-0", at_ms=1, cluster_epoch=2),
    GangStarted(gang_id="group-1", epoch=5, at_ms=2, attempt=1),
    _HOLD,
    NoteClosed(gang_id="group-1", epoch=5, kind="hold", at_ms=3, reason="Restored"),
    Checkpoint(
        epoch=5,
        up_to=20,
        outcomes_seq=12,
        page=0,
        pages=1,
        decisions=(OpenDecision(seq=9, decision=_DECISION),),
        gangs=(OpenGang(gang_id="group-1", attempt=1, started=True, notes=(_HOLD,)),),
    ),
    Outcome(
        gang_id="group-1",
        decision_seq=9,
        epoch=5,
        binder="binder-0",
        delivered=1,
        reason="PreflightFailed",
        members=(Member(uid="pod-1", node="k8s-g1", result="refused", code=403, message="no"),),
    ),
    Verdict(
        gang_id="group-1",
        epoch=5,
        at_ms=4,
        dialect="incubator",
        namespace="kubeflow",
        name="job-1",
        uid="group-1",
        queue="default",
        phase="Pending",
        min_member=4,
        members=4,
        pending=4,
        conditions=(Condition(type="Unschedulable", status="True", reason="NotEnoughResources"),),
        why=Why(
            reason="NotEnoughResources",
            sentence="3 of 4 members do not fit",
            shapes=(
                ShapeReport(
                    role="worker",
                    wanted=3,
                    fit=1,
                    nodes=4,
                    reasons=(Reason(reason="Insufficient nvidia.com/gpu", count=3),),
                ),
            ),
            ahead=("kubeflow/job-0",),
            ahead_count=1,
        ),
        waiting=(PodRef(uid="pod-1", name="job-1-worker-0"),),
        trace_id="0" * 32,
    ),
    EvictionDecision(
        gang_id="group-1",
        gang="kubeflow/job-1",
        epoch=5,
        attempt=1,
        victims=(Victim(uid="pod-2", namespace="kubeflow", name="x"),),
        via="delete",
        reason="BindingRefused",
        why="job-1-worker-0 was refused by the API server: no",
        trace_id="1" * 32,
        first_seen_ms=7,
        cycle=_CYCLE,
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ),
    NoteOpened(
        gang_id="group-1",
        epoch=5,
        kind="hold",
        at_ms=1,
        until_ms=60_001,
        reason="NodeLost",
        pod_uids=("pod-1",),
        role="worker",
        shape=msgspec.msgpack.encode(_SHAPE),
        node="k8s-g1",
        message="node k8s-g1 was deleted",
        cycle=_CYCLE,
    ),
    NoteClosed(
        gang_id="group-1",
        epoch=5,
        kind="hold",
        at_ms=3,
        reason="Filled",
        pod_uids=("pod-1",),
        cycle=_CYCLE,
    ),
    Outcome(
        gang_id="group-1",
        decision_seq=10,
        epoch=5,
        binder="binder-0",
        delivered=2,
        evicted=6,
        members=(Member(uid="pod-1", node="", result="unknown", code=504, message="timeout"),),
    ),
    Outcome(
        gang_id="group-1",
        decision_seq=11,
        epoch=5,
        binder="binder-0",
        delivered=1,
        members=(Member(uid="pod-1", node="n", result="refused", code=403, late=True),),
    ),
    PodChanges(
        epoch=2, at_ms=2, changed=(msgspec.structs.replace(_POD, node="k8s-g1", disrupted=True),)
    ),
    StatusRequest(),
    ServiceStatus(
        service="binder",
        instance="binder-0",
        pid=1,
        version="0.1.0",
        http_port=2,
        ready=True,
        figures={"pods_bound_total": 3.0},
    ),
    FitRequest(group=_GROUP, pods=(_POD,)),
    LedgerRequest(),
    LedgerAnswer(
        queues=(
            LedgerQueue(
                name="research",
                exists=True,
                weight=3,
                waiting=1,
                amounts=(LedgerAmount(resource="cpu", used=4000, wanted=8000, deserved=6000),),
                holders=("kubeflow/job-1",),
                why="it claims 2 cpu more, up to what it deserves",
            ),
        )
    ),
    FitAnswer(fits=False, ever=False, sentence="no node has 8 GPUs"),
    GangDecision(
        gang_id="group-1",
        gang="kubeflow/job-1",
        dialect="incubator",
        epoch=5,
        attempt=2,
        bindings=(_BINDING,),
        quorum=0,
        why="room held for worker-0",
        trace_id="0" * 32,
        first_seen_ms=1,
        cycle=_CYCLE,
        fills=("pod-0",),
    ),
    Checkpoint(
        epoch=5,
        up_to=20,
        outcomes_seq=12,
        page=0,
        pages=1,
        gangs=(OpenGang(gang_id="group-1", attempt=1, started=True, failed_on=("k8s-g1",)),),
    ),
    Checkpoint(
        epoch=5,
        up_to=20,
        outcomes_seq=12,
        consumed_seq=11,
        page=0,
        pages=1,
        decisions=(
            OpenDecision(
                seq=9,
                decision=_DECISION,
                outcome=Outcome(
                    gang_id="group-1", decision_seq=9, epoch=5, binder="binder-0", delivered=1
                ),
                outcome_seq=11,
            ),
        ),
        gangs=(
            OpenGang(gang_id="group-1", attempt=2, failures=1, bad=(("pod-1", "k8s-g1", 60_000),)),
        ),
    ),
    DecisionClaimed(
        gang_id="group-1",
        decision_seq=12,
        binder="binder-1",
        delivered=2,
        generation="5f1c",
    ),
    Outcome(
        gang_id="group-1",
        decision_seq=13,
        epoch=5,
        binder="binder-0",
        delivered=1,
        bound=2,
        generation="5f1c",
    ),
    StreamOpened(stream="DECISIONS", generation="77aa", at_ms=1, replaces="5f1c"),
    ObservationRequest(),
    Observation(
        since_ms=1,
        at_ms=9,
        gangs=(
            GangObserved(
                gang="kubeflow/job-1",
                scheduler_name="volcano",
                needs=4,
                members=4,
                bound=3,
                seen_ms=2,
                complete_ms=3,
                decided_ms=4,
                first_bound_ms=5,
                partial_since_ms=5,
                proved=1,
            ),
        ),
        left_out=1,
    ),
    *SURROUNDING_SAMPLES,
    *DEVICE_SAMPLES,
    *PROVISIONING_SAMPLES,
    StatusRequest(settings=True),
    ServiceStatus(
        service="binder",
        instance="binder-0",
        pid=1,
        version="0.1.0",
        http_port=2,
        ready=True,
        settings={"nats_url": "nats://127.0.0.1:4222", "posts_max": "32"},
    ),
)
