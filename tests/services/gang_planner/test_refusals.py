"""Refused ProvisioningRequests in the planner's shell: from the report on NATS to the verdict."""

import pytest

from services.gang_planner.applier import Applier
from services.gang_planner.inbox import Inbox, RefusalArrival
from services.gang_planner.service import serve_refusals
from shared.bus.connection import Bus
from shared.contracts import codec, subjects
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.questions import RequestRefused
from shared.runtime.steady_clock import SteadyClock
from tests.services.gang_planner.core.lifecycle.test_provisioning import Provisioned
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


async def test_a_reported_refusal_is_in_the_gangs_verdict_and_a_report_that_is_none_is_dropped(
    nats_server: NatsServer,
) -> None:
    scene = Provisioned()
    scene.gang()
    scene.settle()
    message = "403 Forbidden: exceeded quota"
    report = RequestRefused(gang_id="group-job", request=scene.wanted().request, message=message)
    inbox = Inbox()
    bus = await Bus.connect(nats_server.url, name="planner")
    reporting = await Bus.connect(nats_server.url, name="controller")
    try:
        await serve_refusals(bus, inbox)
        await reporting.publish(subjects.REPORT_REFUSED, b"\xc1")
        await reporting.publish(subjects.REPORT_REFUSED, codec.encode(report))
        arrivals = await inbox.take(10.0)
    finally:
        await reporting.close()
        await bus.close()
    assert arrivals == [RefusalArrival(report)]
    Applier(scene.planner, lambda *_: None, SteadyClock()).apply(arrivals)
    scene.settle()
    assert scene.wanted().refusal == message
    why = scene.verdicts["group-job"].why
    assert why is not None
    assert why.reason == PendingReason.PROVISIONING_FAILED
    assert message in why.sentence
