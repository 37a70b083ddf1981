"""Where Tutti's outcome of a lifecycle case is meant to differ from Volcano's, and why.

`docs/compatibility.md` tells users the same. Events are not compared by default: theirs tell of
scheduling sessions, which we have none of; what users look for in them has tests of its own.
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
        ".*", r"\d+/PodGroup~1.*/conditions.*", "conditions tell more than a session's count"
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
        "job/depends-on-(running|minimum-met-gang)",
        r"0/.*",
        "a job with dependsOn and the default minAvailable starts",
    ),
    Explained(
        "jobflow/flow-template-missing",
        r"0/JobFlow~1f/.*",
        "steps that can run are followed; Volcano tells nothing of them",
    ),
    Explained(
        "jobflow/flow-job-deleted",
        r"1/(Job|Pod|PodGroup)~1f-one.*",
        "a missing job is made again at once; Volcano makes it again with the next event",
    ),
    Explained(
        "queues/queue-close-child-then-parent",
        r"2/Queue~1q-kid2/annotations.*",
        "the wish to open below a closed queue is remembered on the queue, not in memory",
    ),
    Explained(
        "plugins/plugin-ray-without-head",
        r"0/Job~1a/controlledResources",
        "what plugins made is told also while pods cannot be made",
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
        "missing room keeps nobody out whose pods would fit",
    ),
)


def unexplained(key: str, found: Iterable[Difference], *, events: bool = False) -> list[Difference]:
    """The differences of case `THEME/CASE` that nobody has given a reason for.

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
