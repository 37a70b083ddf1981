"""Changes of gangs, and what a caller may wait for. Pure."""

from typing import Literal, TypeAlias

import msgspec

from shared.contracts.visibility import Gang

Goal: TypeAlias = Literal["running", "finished"]
"""`running`: its minimum runs, or has run; `finished`: all its members have ended."""


class GangEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A gang exists (`ADDED`, the first event of each), has changed, or was deleted, which has its
    last state.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    gang: Gang


def is_reached(gang: Gang, goal: Goal) -> bool:
    """Whether a gang is where a caller waits for it. A gang is Running as soon as its minimum is
    bound; containers start after that, so for `running` the members that run are counted.
    """
    status = gang.status
    if status.phase == "Completed":
        return True
    started = status.members.running + status.members.succeeded >= status.min_member
    return goal == "running" and status.phase == "Running" and started


def describe(gang: Gang) -> str:
    """A gang's state in a sentence, as far as the API says it."""
    status = gang.status
    counts = f"{status.members.running} of {status.min_member} members run"
    text = f"{gang.metadata.namespace}/{gang.metadata.name} is {status.phase}, {counts}"
    if status.pending is not None:
        text += f": {status.pending.reason}: {status.pending.message}"
    return text
