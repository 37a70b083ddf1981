"""Starts the controllers that were chosen, each with its own consumer, over one client."""

import asyncio
import random

from services.controller.clock import SteadyClock
from services.controller.config import ControllerSettings
from services.controller.podgroup_controller import PodGroupController
from services.controller.reporting import Reporting
from services.controller.status_controller import StatusController
from services.controller.writing import Writer
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import KubeError
from shared.runtime.backoff import delays_s
from shared.runtime.lifecycle import Context, Step


async def serve(ctx: Context[ControllerSettings]) -> None:
    """Run the controllers until stopped. Raises CredentialsError when we are nobody."""
    settings = ctx.settings
    ctx.ready.require("kubernetes", *settings.controllers)
    credentials = await load(settings.kubeconfig, settings.context)
    async with KubeClient(credentials, user_agent="tutti-controller") as client:
        await _wait_reachable(ctx, client)
        controllers = [_make(name, ctx, client) for name in settings.controllers]
        async with asyncio.TaskGroup() as group:
            for name, controller in zip(settings.controllers, controllers, strict=True):
                ctx.on_shutdown(Step.STOP_TAKING, name, controller.stop_taking)
                ctx.on_shutdown(Step.FINISH, name, controller.finish)
                group.create_task(controller.run(), name=name)
                ctx.ready.set(name)


def _make(
    name: str, ctx: Context[ControllerSettings], client: KubeClient
) -> StatusController | PodGroupController:
    if name == "podgroup":
        return PodGroupController(ctx.bus, client)
    clock = SteadyClock()
    reporting = Reporting(ctx.metrics, ctx.tracer)
    writer = Writer(
        client,
        clock,
        reporting,
        writes_per_s=ctx.settings.writes_per_s,
        pod_events_per_s=ctx.settings.pod_events_per_s,
    )
    return StatusController(ctx.bus, writer, clock, reporting)


async def _wait_reachable(ctx: Context[ControllerSettings], client: KubeClient) -> None:
    """Return once the API server has answered anything."""
    for delay_s in delays_s(random.Random(), max_s=2.0):  # noqa: S311 - jitter, no secret
        try:
            await client.send("GET", "/version")
        except KubeError as error:
            ctx.ready.unready("kubernetes", str(error))
        else:
            ctx.ready.set("kubernetes")
            return
        await asyncio.sleep(delay_s)
