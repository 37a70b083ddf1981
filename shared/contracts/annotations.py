"""Annotation keys that Tutti writes or reads on users' objects, each defined once.

Ours have the prefix `tutti.dev/`; the remaining ones belong to the dialects that share them.
"""

#: On a pod, merged in by its Binding: sequence of the decision in DECISIONS,
#: "<generation>/<sequence>".
DECISION = "tutti.dev/decision"
#: On a pod and its group: the gang's trace id, 32 hexadecimal digits.
TRACE_ID = "tutti.dev/trace-id"
#: On a submitter's object: a W3C traceparent, which becomes a link of the gang's trace.
TRACEPARENT = "tutti.dev/traceparent"
#: On the first group that the Job controller creates for a Job: the Job's UID. The gang's trace id
#: is derived from it, so that the Job's admission is exported in the same trace (ADR 0037).
TRACE_ROOT = "tutti.dev/trace-root"
#: On a group: the whole verdict as JSON (`tutti why` reads it).
VERDICT = "tutti.dev/verdict"
# Settings of a group; on a Queue each is the default of its groups. Seconds are whole, 0 is off.
#: Seconds for which capacity is reserved for a lost member; 60 by default.
HOLD_SECONDS = "tutti.dev/hold-seconds"
#: Seconds that the rest of `minResources` is reserved for pods that do not exist yet, from when the
#: first pods of the group were placed; 600 by default, 0: `minResources` reserve nothing.
RESERVE_SECONDS = "tutti.dev/reserve-seconds"
#: Seconds within which all placed members must run, or the gang is released; off by default.
START_DEADLINE_SECONDS = "tutti.dev/start-deadline-seconds"
#: Seconds a started gang may stay below its quorum before it is released; off by default.
DEGRADED_GRACE_SECONDS = "tutti.dev/degraded-grace-seconds"
#: Seconds from when a gang was first seen. If none of its pods is placed by then, none is placed
#: any more; off by default.
PLACEMENT_DEADLINE_SECONDS = "tutti.dev/placement-deadline-seconds"
#: Seconds from a gang's first binding until its bound pods are released, if its quorum is not
#: placed by then; 30 by default.
REPAIR_DEADLINE_SECONDS = "tutti.dev/repair-deadline-seconds"
#: Seconds that a gang's pods run before they may be evicted for another gang; 0 by default.
MINIMUM_RUN_SECONDS = "tutti.dev/minimum-run-seconds"
#: On a queue: how many of its groups are admitted although no node can hold them; 4 by default.
ENQUEUE_WITHOUT_ROOM = "tutti.dev/enqueue-without-room"
# Run limits: a duration as in "90m" or "4h30m", or a whole number of seconds.
#: On a group, a workload or its pods' template: how long the gang runs at most, from when its
#: minimum runs; on a queue: the limit of gangs that have none.
RUN_LIMIT = "tutti.dev/run-limit"
#: On a group that Tutti or an operator made: the smallest limit of the objects above its pods, in
#: seconds; a group that Tutti made has their `RUN_LIMIT` besides. The maximum of a queue does not
#: refuse it.
OWNER_RUN_LIMIT = "tutti.dev/owner-run-limit"
#: On a queue: the longest run limit of its gangs.
RUN_LIMIT_MAX = "tutti.dev/run-limit-max"
#: On a queue: how long before its limit a gang gets a notice of its eviction; a minute by default.
RUN_LIMIT_NOTICE = "tutti.dev/run-limit-notice"
#: On a queue: "false": limits only serve planning, and no gang is evicted at its limit.
RUN_LIMIT_ENFORCED = "tutti.dev/run-limit-enforced"
#: On a queue: how long a gang waits until free capacity is kept for it although it is not known
#: when enough of it becomes free: gangs without a run limit have it; "0": never.
CAPACITY_HOLD_AFTER = "tutti.dev/capacity-hold-after"
#: Roles of a group whose pods are created only when the other roles run, and how many pods of each
#: (1 by default): "launcher", "driver=2,monitor".
LATE_ROLES = "tutti.dev/late-roles"
#: "always": prove all bindings before the first is sent, whatever owns the pods; "": by owner.
PREFLIGHT = "tutti.dev/preflight"
#: "all" on a Kubernetes Job, or on an operator's object of a kind in `shared.dialects.owner_kinds`:
#: all its pods are one gang; on a Queue, and as a label of a namespace: the default of such
#: objects. On a PodGroup that Tutti made: what was asked for when it was created.
GANG = "tutti.dev/gang"
#: Label of a namespace: "true" lets the webhook put a scheduler name of Tutti into its pods of
#: gangs when they are created (ADR 0067).
SCHEDULE = "tutti.dev/schedule"
#: "true": the gang's pods carry `DO_NOT_DISRUPT` and `SAFE_TO_EVICT` from their binding until the
#: gang has ended; "false" on a group: not even if its queue says "true".
UNDISTURBED = "tutti.dev/do-not-disrupt"
#: On a queue: the class of the ProvisioningRequest that each of its gangs waits for; "": none.
PROVISIONING_CLASS = "tutti.dev/provisioning-class"
#: On a queue: the parameters of these requests, "name=value,name=value".
PROVISIONING_PARAMETERS = "tutti.dev/provisioning-parameters"
# Topology by node labels, on a group of any dialect: the key of a label whose value is a domain.
#: All members inside one domain.
REQUIRED_TOPOLOGY = "tutti.dev/required-topology"
#: All members inside one domain if that is possible.
PREFERRED_TOPOLOGY = "tutti.dev/preferred-topology"

#: Pod -> PodGroup, shared by kube-batch, Volcano and their successors.
GROUP_NAME = "scheduling.k8s.io/group-name"
#: Gang size on a bare pod (kube-batch).
GROUP_MIN_MEMBER = "scheduling.k8s.io/group-min-member"
#: On a group of bare pods whose template and members declare different sizes: the older of the two,
#: which does not count, as "template=8" or "members=8".
SUPERSEDED_MINIMUM = "tutti.dev/superseded-minimum"
#: On a group that Tutti made: keys of the annotations that it has from its pods and the objects
#: above them, sorted and separated by commas. They are removed with their origin.
INHERITED = "tutti.dev/inherited"
#: "true" on a group that Tutti made: its workload has completed or failed, and makes no pods again.
WORKLOAD_ENDED = "tutti.dev/workload-ended"
#: Gang size on the owner of bare pods (Volcano).
OWNER_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
#: Queue of a bare pod, and default queue of a namespace (Volcano).
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
#: Role of a pod in its gang, annotation or label (Volcano).
TASK_SPEC = "volcano.sh/task-spec"
#: Index of a pod in its role (Volcano).
TASK_INDEX = "volcano.sh/task-index"
#: HyperNode that a gang was placed in, on its group (Volcano).
ALLOCATED_HYPERNODE = "volcano.sh/job-allocated-hypernode"
#: Time from its start in which a pod is not evicted for another gang (Volcano); also a label.
COOLDOWN_TIME = "volcano.sh/cooldown-time"
#: Priority of a pod within its gang (Volcano).
TASK_PRIORITY = "volcano.sh/task-priority"

#: Label of pods and workloads: the LocalQueue whose quota they use (Kueue).
LOCAL_QUEUE = "kueue.x-k8s.io/queue-name"
#: Scheduling gate of pods that Kueue has not admitted.
ADMISSION_GATE = "kueue.x-k8s.io/admission"

#: On a pod: Karpenter does not remove its node ("true").
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
#: On a pod: cluster-autoscaler does not remove its node ("false").
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
#: On a pod: the ProvisioningRequest whose capacity it uses, and the request's class; then the keys
#: that older versions of cluster-autoscaler read.
CONSUMES_REQUEST = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
REQUEST_CLASS = (
    "autoscaling.x-k8s.io/provisioning-class-name",
    "cluster-autoscaler.kubernetes.io/provisioning-class-name",
)
