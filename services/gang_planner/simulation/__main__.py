"""`python -m services.gang_planner.simulation`: simulates the plan on standard input, or reads the
recording that it names.
"""

import sys

import msgspec

from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.recorder import NoSegment
from services.gang_planner.simulation.engine import Engine
from services.gang_planner.simulation.recording import read_recording
from shared.contracts.simulation import (
    RecordingQuestion,
    RecordingReport,
    SimulationPlan,
    SimulationProgress,
    SimulationResult,
)
from shared.runtime import collector


def main() -> None:
    """Read what is asked for, and write progress and the result."""
    collector.relax()
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=SimulationPlan | RecordingQuestion)
    if isinstance(asked, RecordingQuestion):
        try:
            _write(read_recording(asked.segments))
        except (NoSegment, OSError, ConfigurationError) as error:
            _write(RecordingReport(problem=str(error)))
        return
    jobs, shown = len(asked.jobs), 0

    def show(ended: int) -> None:
        nonlocal shown
        percent = ended * 100 // jobs
        if percent != shown:
            shown = percent
            _write(SimulationProgress(ended=ended))

    try:
        _write(Engine(asked, show).run())
    except ConfigurationError as error:
        _write(SimulationResult(problem=str(error)))


def _write(message: SimulationProgress | SimulationResult | RecordingReport) -> None:
    # JSON has no bytes of its own: shapes are in Base64.
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
