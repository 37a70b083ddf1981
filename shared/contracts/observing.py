"""The observer's report: for each gang, the bindings of another scheduler and Tutti's decisions.

Requested on `ask.observer.report`; the same struct is the JSON of a report file. Instants are
milliseconds since the epoch; 0: has not happened, or happened before observation began.
"""

from typing import Final, Literal

from shared.model.objects import GROUP_NAME_SCOPE
from shared.model.terms import Struct

Proof = Literal["proved", "overtaken", "failed"]
"""Result of the check of a decision. proved: members, nodes and free capacity existed for the whole
quorum. overtaken: they existed when the decision was made, but the other scheduler was faster than
the check. failed: they did not exist, which is a defect of Tutti.
"""


class ObservationRequest(Struct, frozen=True, kw_only=True, tag="observation.ask"):
    """Requests all observations so far: page 0 freezes them, further pages name their instant."""

    page: int = 0
    at_ms: int = 0


class GangObserved(Struct, frozen=True, kw_only=True):
    """One gang, from its first pod to its last.

    A gang that is created again under its name after all its pods are gone is another gang.
    """

    #: "namespace/name" of its group, or of the owner of its pods.
    gang: str
    #: The scope of that name, as in `PodGroup`.
    scope: str = GROUP_NAME_SCOPE
    scheduler_name: str = ""
    #: How many members it needs to run, and how many it has.
    needs: int = 1
    members: int = 0
    #: How many of them have a node.
    bound: int = 0
    #: True: some of its pods had a node already when observation began.
    before: bool = False
    seen_ms: int = 0
    #: When as many members as it needs existed.
    complete_ms: int = 0
    #: When Tutti would have bound its quorum.
    decided_ms: int = 0
    #: When the other scheduler bound its first member, and when as many as it needs.
    first_bound_ms: int = 0
    whole_ms: int = 0
    #: For how long it was bound in part: in total, and since when it is now.
    partial_ms: int = 0
    partial_since_ms: int = 0
    #: All its pods are gone.
    ended_ms: int = 0
    #: Decisions to bind, by the result of their check.
    proved: int = 0
    overtaken: int = 0
    failed: int = 0
    #: Why the last failed check failed.
    failure: str = ""
    #: Pods that Tutti would have evicted for it, in the largest such decision.
    evicts: int = 0
    #: Why Tutti would have released its bound pods; "": it would not.
    release: str = ""


#: Gangs in one answer: a row is a few hundred bytes, three thousand at most.
PAGE_GANGS: Final = 300
#: Bytes of `GangObserved.failure` and of `release`.
TEXT_BYTES_MAX: Final = 512


class Observation(Struct, frozen=True, kw_only=True, tag="observation.answer"):
    """All observations: existing gangs, then former ones, oldest first."""

    since_ms: int
    at_ms: int
    gangs: tuple[GangObserved, ...] = ()
    #: The number of former gangs that are left out, so that a report stays bounded.
    left_out: int = 0
    #: Of an answer: number of this page, and of all pages.
    page: int = 0
    pages: int = 1
