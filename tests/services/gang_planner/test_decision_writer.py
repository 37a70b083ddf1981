"""The active planner's shell, where the server accepts less than the core assumes."""

from types import SimpleNamespace

import pytest

from services.gang_planner.applier import Applier
from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from services.gang_planner.decision_writer import DecisionWriter
from services.gang_planner.reporting import Reporting
from services.gang_planner.tracing import GangTraces
from shared.bus.connection import Bus
from shared.contracts.verdicts import Verdict
from shared.runtime.steady_clock import SteadyClock
from shared.telemetry.metrics import Metrics
from tests.support.kept_spans import KeptSpans
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


async def test_a_verdict_that_the_server_does_not_accept_is_counted_and_ends_no_planner(
    nats_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    metrics, clock = Metrics("gang-planner"), SteadyClock()
    planner = Planner(parse_configuration(""))
    bus = await Bus.connect(nats_server.url, name="planner")
    context = SimpleNamespace(
        bus=bus,
        foreign_messages=SimpleNamespace(met=None),
        settings=SimpleNamespace(ahead_ms=0, ahead_pods_min=0),
    )
    writer = DecisionWriter(
        context,  # type: ignore[arg-type]  # as much of it as is used
        planner,
        Applier(planner, lambda *_: None, clock),
        Reporting(metrics, clock.now_ms),
        GangTraces(KeptSpans()),
        wake=lambda: None,
    )
    verdict = Verdict(
        gang_id="g",
        epoch=1,
        at_ms=1,
        dialect="volcano",
        namespace="team",
        name="large",
        queue="q" * (2 << 20),
        phase="Pending",
    )
    try:
        await writer._publish(verdict)
        await writer.flush()
    finally:
        await bus.close()
    assert metrics.figures()["verdicts_too_large_total"] == 1
    assert "the verdict on team/large is not sent" in caplog.text
