"""Verdicts for the tests of the controllers."""

from typing import Any

import msgspec

from services.controller.core.statuses.intents import Situation, WriteIntervals
from shared.contracts.verdicts import Condition, PodRef, Verdict, Why
from shared.dialects.discovery import dialect

START_MS = 1_700_000_000_000
KNOBS = WriteIntervals(started_ms=START_MS)
SENTENCE = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu"


def make_verdict(**given: Any) -> Verdict:
    """A gang of three in Volcano's dialect, seen after the controller's start; `given` wins."""
    verdict = Verdict(
        gang_id="gang-uid",
        epoch=2,
        at_ms=START_MS,
        dialect="volcano",
        namespace="team",
        name="job",
        uid="gang-uid",
        phase="Pending",
        min_member=3,
        members=3,
        pending=3,
        trace_id="0" * 32,
        first_seen_ms=START_MS,
    )
    return msgspec.structs.replace(verdict, **given)


def make_waiting(**given: Any) -> Verdict:
    """The same gang, waiting for room."""
    fields: dict[str, Any] = {
        "phase": "Inqueue",
        "conditions": (
            Condition(
                type="Unschedulable",
                status="True",
                reason="NotEnoughResources",
                message=f"3/3 tasks in gang unschedulable: {SENTENCE}",
                since_ms=START_MS,
            ),
        ),
        "why": Why(reason="NotEnoughResources", sentence=SENTENCE, since_ms=START_MS),
        "waiting": tuple(PodRef(uid=f"u-{index}", name=f"w-{index}") for index in range(3)),
    }
    return make_verdict(**{**fields, **given})


def make_running(**given: Any) -> Verdict:
    """The same gang, all placed."""
    fields: dict[str, Any] = {
        "phase": "Running",
        "pending": 0,
        "running": 3,
        "placed": tuple(
            PodRef(uid=f"u-{index}", name=f"w-{index}", node=f"n-{index}") for index in range(3)
        ),
    }
    return make_verdict(**{**fields, **given})


def situation(verdict: Verdict, *, since_ms: int = START_MS, compared: bool = False) -> Situation:
    """The verdict as the shell would hand it to the plan."""
    patch = dialect(verdict.dialect).status(verdict) if verdict.dialect else None
    return Situation(verdict=verdict, patch=patch, since_ms=since_ms, compared=compared)
