"""Where Tutti's outcome of a lifecycle case is meant to differ from Volcano's, and why.

`docs/compatibility.md` lists the same for users. Events are not compared by default: Volcano's
describe scheduling sessions, which Tutti does not have; what users look for in them has its own
tests.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.conformance.recordings import Difference


class Explained(NamedTuple):
    """Differences that are meant."""

    cases: str
    """Regular expression on `THEME/CASE` (the whole)."""

    where: str
    """Regular expression on `Difference.where` (the whole)."""

    why: str


EXPLAINED: Final = (
    Explained(
        ".*", r"\d+/PodGroup~1.*/conditions.*", "conditions have more than a session's count"
    ),
    Explained(".*", r"\d+/Pod~1[^/]*/scheduled.*", "the message says what is missing where"),
    Explained(
        ".*",
        r"\d+/Job~1[^/]*/(succeeded|failed|taskStatusCount)",
        "the counts of finished jobs are kept",
    ),
    Explained(
        "jobflow/.*",
        r"\d+/JobFlow~1f/conditions/[^/]*/taskStatusCount",
        "the counts of finished jobs are kept",
    ),
    Explained(
        "job/(suspend|resume)-.*|jobflow/flow-step-aborted",
        r"\d+/(Job~1[^/]*/retryCount|JobFlow~1f/jobs/0/restartCount|Pod~1[^/]*/of)",
        "a resume is no retry",
    ),
    Explained(
        "job/resume-counts-as-retry",
        r"4/.*",
        "a resume is no retry: the job runs again, not Failed",
    ),
    Explained(
        "policies/policy-(timeout-fires|pending-timeout-aborts)",
        r"[02]/.*",
        "a delayed AbortJob ends Aborted; Volcano's loses its status write (a defect, recorded)",
    ),
    Explained(
        "policies/policy-unknown-restartjob",
        r"[23]/Pod~1a-x-0/life",
        "the restart comes before the lost pod was made again, not after",
    ),
    Explained(
        "policies/policy-unknown-abortjob",
        r"2/Job~1a/conditions/[01]",
        "the policy acts before the job has gone back to Pending",
    ),
    Explained(
        "gang/gang-(refused-at-enqueue|second-waits-for-the-first|small-overtakes-big)"
        "|queues/priority-does-not-evict-by-default",
        r"[01]/(Job~1[ab]/pending|Pod~1[ab]-w-\d|PodGroup~1[ab]-.*/phase)",
        "a group without free capacity is admitted, too, so that an autoscaler sees its pods",
    ),
    Explained("gang/gang-no-replicas", r"0/PodGroup~1a-.*/phase", "nothing ran: not Completed"),
    Explained(
        "job/scale-to-zero-and-back",
        r"1/PodGroup~1a-.*/phase",
        "none of its pods has ended: not Completed",
    ),
    Explained(
        "job/scale-down-finished-counts",
        r"2/PodGroup~1a-.*/succeeded",
        "what has succeeded counts after its pod is gone",
    ),
    Explained(
        "gang/gang-template-other-scheduler",
        r"0/PodGroup~1a-.*/(phase|running)",
        "a pod of another scheduler is no member that this one has placed",
    ),
    Explained(
        "gang/gang-elastic-part-waits|queues/queue-guarantee-is-kept-free"
        "|queues/(priority-of-tasks-in-one-job|queue-capability-elastic)|hierarchy/.*",
        r"[01]/Pod~1[ab]-\w+-\d+/(node|phase)",
        "which of the pods beyond a gang's minimum run: those that came first",
    ),
    Explained(
        "queues/priority-of-tasks-in-one-job",
        r"0/Job~1a/taskStatusCount/(hi|lo)/phase/.*",
        "pods beyond a gang's minimum are placed as they come, not a second later",
    ),
    Explained(
        "queues/queue-gangs-above-their-shares",
        r"3/.*",
        "gangs larger than their queues' shares do not block each other on an empty cluster",
    ),
    Explained(
        "queues/priority-overcommit-keeps-the-higher-out",
        r"[23]/.*",
        "missing room orders groups: the one of higher priority runs",
    ),
    Explained(
        "hierarchy/tree-guarantee-of-sibling-kept-free",
        r"0/.*",
        "what a sibling's guarantee reserves is kept free",
    ),
    Explained(
        "hierarchy/(flat-deserved|tree-deserved-reclaimed-from-sibling)",
        r"1/.*",
        "reclaim continues to what each queue deserves, not to the gang's minimum",
    ),
    Explained(
        "preempt/preempt-breaks-gang|preempt/preempt-takes-the-lowest-priority",
        r"[12]/.*",
        "a gang that must go goes whole: what is left of it below its minimum would hold room",
    ),
    Explained(
        "preempt/preempt-gang-too-big-anyway",
        r"1/Pod~1b-w-\d/nominatedNodeName",
        "a preemption that is given up leaves no nomination (a defect, recorded)",
    ),
    Explained(
        "preempt/preempt-elastic-job-loses-only-what-is-needed",
        r"1/Pod~1[ab]-w-\d.*",
        "which of a gang's equal pods go",
    ),
    Explained(
        "preempt/reclaim-by-weight",
        r"1/.*",
        "reclaim continues to the queues' shares, not to the gang's minimum",
    ),
    Explained(
        "preempt/reclaim-breaks-a-gang",
        r"1/.*",
        "no gang is broken by reclaim: whole, it would leave its queue below its share",
    ),
    Explained(
        "preempt-(overcommit|proportion)/.*",
        r"1/.*",
        "missing room keeps no preemptor or reclaimer out",
    ),
    Explained(
        "job/depends-on-(running|minimum-met-gang)",
        r"0/.*",
        "a job with dependsOn and the default minAvailable starts",
    ),
    Explained(
        "job/depends-on-(waits|all-of-two)",
        r"0/PodGroup~1a-.*/minTaskMember/.*",
        "a role that waits for another has no minimum until its pods may be made",
    ),
    Explained(
        "jobflow/flow-template-missing",
        r"0/JobFlow~1f/.*",
        "steps that can run are followed; Volcano does not report them",
    ),
    Explained(
        "jobflow/flow-job-deleted",
        r"1/(Job|Pod|PodGroup)~1f-one.*",
        "a missing job is made again at once; Volcano makes it again with the next event",
    ),
    Explained(
        "queues/queue-close-child-then-parent",
        r"2/Queue~1q-kid2/annotations.*",
        "the request to open below a closed queue is stored on the queue, not in memory",
    ),
    Explained(
        "queues/queue-close-restart-in-closed",
        r"2/Job~1a/(terminating|reason)",
        "while a job waits for its queue its status has why it restarts, and that nothing is "
        "terminating any more; Volcano's status stops with the refusal",
    ),
    Explained(
        "queues/queue-close-restart-in-closed",
        r"2/Queue~1q-rest/status/allocated/.*",
        "capacity that is reserved for the successor of a restarting job's pod counts as allocated",
    ),
    Explained(
        "plugins/plugin-ray-without-head",
        r"0/Job~1a/controlledResources",
        "what plugins made is reported also while pods cannot be made",
    ),
    Explained(
        "job/volume-claim-made",
        r"0/PersistentVolumeClaim~1.*/spec/storageClassName",
        "the recording's cluster had a default storage class",
    ),
    Explained(
        "workloads/own-podgroup-no-minimum", r"0/PodGroup~1none/phase", "nothing ran: not Completed"
    ),
    Explained(
        "workloads/own-podgroup-min-resources-too-big",
        r"[01]/(PodGroup~1big|Pod~1p1)/.*",
        "a gang that does not fit keeps no gang out whose pods would fit",
    ),
)


def unexplained(key: str, found: Iterable[Difference], *, events: bool = False) -> list[Difference]:
    """Return the differences of case `THEME/CASE` that have no explanation here.

    Args:
        key: Names the case.
        found: Its differences.
        events: Whether those of events count too.
    """
    reasons = [re.compile(one.where) for one in EXPLAINED if re.fullmatch(one.cases, key)]
    return [
        one
        for one in found
        if (events or not one.is_event) and not any(why.fullmatch(one.where) for why in reasons)
    ]
