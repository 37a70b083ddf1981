"""The reasons for which a gang waits, as in `Why.reason` and in the condition Unschedulable.

The active planner sets them. Messages have them as text, because a newer planner may publish a
reason that a reader does not know.
"""

import enum


class PendingReason(enum.StrEnum):
    """Why a gang waits."""

    # The objects that declare the gang.
    #: Its members name a group object that does not exist.
    GROUP_MISSING = "GroupMissing"
    #: Its group object is being deleted.
    GROUP_DELETING = "GroupDeleting"
    #: Its group object has errors.
    INVALID_GROUP = "InvalidGroup"
    #: Another dialect's group object has the same name, and that one is in effect.
    DUPLICATE_GROUP = "DuplicateGroup"

    # Its queue.
    #: Its queue does not exist.
    QUEUE_MISSING = "QueueMissing"
    #: Its queue is closed or closing.
    QUEUE_NOT_OPEN = "QueueNotOpen"
    #: The parent of its queue does not exist.
    QUEUE_PARENT_MISSING = "QueueParentMissing"
    #: The parents of its queue form a cycle.
    QUEUE_CYCLE = "QueueCycle"
    #: Its queue has queues below it.
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    #: The action `enqueue` has not admitted it.
    NOT_ADMITTED = "NotAdmitted"
    #: Its queue is strictly first-in, first-out, and another gang is ahead.
    BEHIND_IN_QUEUE = "BehindInQueue"

    # Its members.
    #: Fewer members than its minimum exist that could be placed.
    NOT_ENOUGH_PODS = "NotEnoughPods"
    #: Fewer members of a role than the role's minimum exist that could be placed.
    NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
    #: Fewer members of a sub-group than its minimum exist that could be placed.
    NOT_ENOUGH_PODS_OF_SUB_GROUP = "NotEnoughPodsOfSubGroup"
    #: Members have different scheduler names, priorities or preemption policies, which the API of
    #: the group forbids.
    MEMBERS_DIFFER = "MembersDiffer"
    #: Members have scheduling gates.
    GATED = "Gated"
    #: Members have a constraint that the planner does not evaluate.
    UNSUPPORTED = "Unsupported"
    #: Members request a part of a device, which another component allocates by its own protocol.
    UNSUPPORTED_DEVICE = "UnsupportedDevice"
    #: Members have a gang declaration that is not read. If Tutti bound the pods singly, the gang
    #: could start partly.
    UNSUPPORTED_GANG = "UnsupportedGang"

    # Capacity.
    #: The nodes have too little free capacity.
    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    #: Its queue, a parent of the queue or a ResourceQuota has too little left, or it leaves free
    #: capacity to queues that deserve it.
    NOT_ENOUGH_QUOTA = "NotEnoughQuota"
    #: It may fit: the search for nodes ended because its budget was used up.
    SEARCH_BUDGET_EXCEEDED = "SearchBudgetExceeded"
    #: It would fit, and might delay a gang for which capacity is reserved.
    WOULD_DELAY = "WouldDelayReservation"
    #: It is partly bound, and its missing members do not fit.
    REPAIR_ROOM = "RepairRoom"
    #: Pods are being evicted for it, and their nodes have reservations for it.
    PREEMPTING = "Preempting"
    #: It is being evicted for another gang. It is placed again after all its pods have left.
    EVICTED = "Evicted"

    # Its ProvisioningRequest, if its queue asks for one.
    #: The request is not provisioned yet.
    AWAITS_PROVISIONING = "AwaitsProvisioning"
    #: The request failed, or its capacity is not kept any more, and another one follows after a
    #: backoff; or the API server refuses it, and it is tried again.
    PROVISIONING_FAILED = "ProvisioningFailed"
    #: The API server does not serve ProvisioningRequests, or its pods have too many shapes for one.
    PROVISIONING_UNAVAILABLE = "ProvisioningUnavailable"

    # The planner.
    #: No pod of it was placed by its placement deadline, so none is placed any more.
    PLACEMENT_DEADLINE = "PlacementDeadline"
    #: The planner's cluster state is too old for a decision.
    CLUSTER_VIEW_STALE = "ClusterViewStale"
    #: As many pods are being bound as the in-flight limit allows.
    BINDING_THROTTLED = "BindingThrottled"
    #: The configuration does not name the action that would place it.
    ACTION_MISSING = "ActionMissing"
    #: Its quorum does not fit into one message.
    GANG_TOO_LARGE = "GangTooLarge"

    # An earlier decision. The planner retries the gang at a fixed time.
    #: The API server has not answered its bindings in flight, on which its other members depend.
    AWAITS_OUTCOME = "AwaitsOutcome"
    #: Its last decision was not carried out.
    BACKOFF = "Backoff"
    #: The API server refused a binding. The sentence has its message and the member's name.
    BINDING_REFUSED = "BindingRefused"
    #: Its bound pods are released, because its quorum was not placed in time.
    REPAIR_DEADLINE = "RepairDeadline"
    #: Its bound pods are released, because another partly bound gang needs the same capacity.
    REPAIRS_BLOCKED = "RepairsBlocked"
    #: Its bound pods are released, because it did not run by its start deadline.
    START_DEADLINE = "StartDeadline"
    #: Its bound pods are released, because it was below its quorum for too long.
    DEGRADED_GRACE = "DegradedGrace"
    #: Its bound pods are evicted, because its run limit has passed.
    RUN_LIMIT = "RunLimitExceeded"
    #: Members are placed and do not run. The sentence has the kubelet's message.
    NOT_STARTING = "NotStarting"
