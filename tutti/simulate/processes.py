"""Simulates plans, each in a process of its own: the planner's core belongs to its service."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from shared.contracts.simulation import (
    RecordingQuestion,
    RecordingReport,
    SimulationPlan,
    SimulationProgress,
    SimulationResult,
)
from shared.model.invariants import InvariantViolation
from tutti.api.failures import Refusal

_Message: TypeAlias = SimulationProgress | SimulationResult | RecordingReport
_LINE_BYTES_MAX = 1 << 30
_PROGRAM = "services.gang_planner.simulation"


async def simulate_all(
    plans: Sequence[SimulationPlan], on_progress: Callable[[int, int], None]
) -> list[SimulationResult]:
    """Simulate plans, as many at once as there are processors; `on_progress` gets a plan's position
    and the number of its jobs that have ended. Raises Refusal.
    """
    free = asyncio.Semaphore(os.cpu_count() or 1)

    async def simulate(place: int) -> SimulationResult:
        async with free:
            result = await ask(plans[place], lambda ended: on_progress(place, ended))
        if not isinstance(result, SimulationResult):
            raise InvariantViolation("a plan", "must be answered with a result")
        return result

    return await asyncio.gather(*(simulate(place) for place in range(len(plans))))


async def ask(
    question: SimulationPlan | RecordingQuestion,
    on_progress: Callable[[int], None] = lambda _: None,
) -> SimulationResult | RecordingReport:
    """Ask a process of the planner's program. Raises Refusal."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_BYTES_MAX,
    )
    try:
        if process.stdin is None or process.stdout is None:
            raise Refusal("the simulation has no pipes")
        process.stdin.write(msgspec.msgpack.encode(question))
        process.stdin.close()
        async for line in process.stdout:
            message: _Message = msgspec.json.decode(line, type=_Message)
            if not isinstance(message, SimulationProgress):
                return message
            on_progress(message.ended)
    finally:
        if process.returncode is None:
            # It has nothing more to write.
            process.kill()
        await process.wait()
    raise Refusal(f"the simulation ended with status {process.returncode}")
