"""What an observer reports: per gang, what another scheduler did and what Tutti would have done.

Asked on `ask.observer.report`; the same struct is the JSON of a report file. Instants are
milliseconds since the epoch, 0: has not happened, or happened before anybody looked.
"""

from typing import Final, Literal

import msgspec

Proof = Literal["proved", "overtaken", "failed"]
"""What a recount made of a decision. proved: members, nodes and room were there, for the whole
quorum. overtaken: they were when it was made, and the other scheduler was faster than the recount.
failed: they were not; a defect of Tutti's.
"""


class ObservationRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="observation.ask"
):
    """Asks for everything observed so far; page 0 freezes it, further pages name its instant."""

    page: int = 0
    at_ms: int = 0


class GangObserved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One gang, from its first pod to its last.

    A gang that is made again under its name when all its pods have gone is another one.
    """

    #: "namespace/name" of its group, or of the owner of its pods.
    gang: str
    scheduler_name: str = ""
    #: How many members it needs to run, and how many it has.
    needs: int = 1
    members: int = 0
    #: How many of them have a node.
    bound: int = 0
    #: True: something of it had a node already when observation began.
    before: bool = False
    seen_ms: int = 0
    #: As many members as it needs were there to be bound.
    complete_ms: int = 0
    #: Tutti would have bound it, whole.
    decided_ms: int = 0
    #: The other scheduler bound its first member, and as many as it needs.
    first_bound_ms: int = 0
    whole_ms: int = 0
    #: How long it had a part of what it needs: in all, and since when it does now.
    partial_ms: int = 0
    partial_since_ms: int = 0
    #: All its pods are gone.
    ended_ms: int = 0
    #: Decisions to bind, by the result of their recount.
    proved: int = 0
    overtaken: int = 0
    failed: int = 0
    #: Why the last recount that failed did.
    failure: str = ""
    #: Pods that Tutti would have evicted for it, in the largest such decision.
    evicts: int = 0
    #: Why Tutti would have released what was bound of it; "": it would not.
    release: str = ""


#: Gangs in one answer: a row is a few hundred bytes, two thousand at most.
PAGE_GANGS: Final = 400


class Observation(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="observation.answer"
):
    """Everything observed: gangs that are there, then those that have gone, oldest first."""

    since_ms: int
    at_ms: int
    gangs: tuple[GangObserved, ...] = ()
    #: Gangs that had gone and are not listed any more, so that a report stays bounded.
    left_out: int = 0
    #: Of an answer: it has the gangs of one page of so many.
    page: int = 0
    pages: int = 1
