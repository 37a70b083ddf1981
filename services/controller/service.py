"""Starts the chosen controllers: those that read verdicts, each with a consumer of its own, and
reconcilers, which share caches.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from services.controller.config import ControllerSettings
from services.controller.cronjob_controller import CronJobReconciler
from services.controller.gc_controller import GarbageReconciler
from services.controller.hypernode_controller import HyperNodeReconciler
from services.controller.intent_writer import IntentWriter
from services.controller.job_controller import JobReconciler
from services.controller.job_spans import JobSpans
from services.controller.jobflow_controller import JobFlowReconciler
from services.controller.other_controllers import OtherControllers
from services.controller.planner_heartbeat import PlannerHeartbeat
from services.controller.podgroup_controller import PodGroupController
from services.controller.provisioning_controller import ProvisioningController
from services.controller.queue_command_policy import QueueCommandPolicy
from services.controller.queue_controller import QueueReconciler, from_ledger
from services.controller.reconciling.controller import Controller, Reconciler, Runtime
from services.controller.reconciling.sharding import Shards
from services.controller.reporting import Reporting
from services.controller.status_controller import StatusController
from services.controller.volcano_metrics import ControllerMetrics
from services.controller.workload_controller import WorkloadReconciler
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import KubeError
from shared.kube.leases import VOLCANO_CONTROLLERS
from shared.pacing import Backoff
from shared.runtime.lifecycle import Context, Step
from shared.telemetry.metrics import ApiCalls

Make = Callable[[Runtime, Context[ControllerSettings]], Reconciler]

_Running: TypeAlias = Controller | PodGroupController | ProvisioningController | StatusController

#: Reconciling controller -> its constructor.
RECONCILERS: Final[dict[str, Make]] = {
    "cronjob": lambda runtime, _ctx: CronJobReconciler(runtime),
    "gc": lambda runtime, _ctx: GarbageReconciler(runtime),
    "hypernode": lambda runtime, ctx: HyperNodeReconciler(
        runtime, ctx.settings.controller_configmap
    ),
    "job": lambda runtime, ctx: JobReconciler(
        runtime, ctx.settings.scheduler_name, JobSpans(ctx.tracer, ctx.now_ms)
    ),
    "jobflow": lambda runtime, _ctx: JobFlowReconciler(runtime),
    "queue": lambda runtime, ctx: QueueReconciler(
        runtime,
        from_ledger(ctx.bus),
        QueueCommandPolicy(
            runtime.client,
            ctx.settings.queue_command_policy,
            namespaces=ctx.settings.queue_command_namespaces,
            owner_cluster_role=ctx.settings.owner_cluster_role,
        ),
    ),
    "workload": lambda runtime, _ctx: WorkloadReconciler(runtime),
}


async def serve(ctx: Context[ControllerSettings]) -> None:
    """Run the controllers until stopped. Raises CredentialsError without valid credentials."""
    settings = ctx.settings
    names = settings.chosen()
    ctx.ready.require("kubernetes", *names)
    credentials = await load(settings.kubeconfig, settings.context)
    calls = ApiCalls(ctx.metrics)
    async with KubeClient(credentials, user_agent="tutti-controller", on_call=calls) as client:
        await _wait_reachable(ctx, client)
        runtime = Runtime(client, writes_per_s=settings.objects_per_s)
        reconcilers = [name for name in names if name in RECONCILERS]
        shards = Shards(
            client,
            ctx.instance,
            reconcilers,
            namespace=settings.lease_namespace,
            others=_others(client, settings, VOLCANO_CONTROLLERS),
            pod_uid=settings.pod_uid,
        )
        controllers: dict[str, _Running] = {
            name: _make(name, ctx, client, runtime, shards) for name in names
        }
        status = controllers.get("status")
        if isinstance(status, StatusController):
            # Gangs wait for their requests even if Volcano's own controllers run its kinds.
            controllers["provisioning"] = ProvisioningController(
                ctx.bus, client, status.writes_statuses, ctx.foreign_messages.met
            )
        ControllerMetrics(ctx.metrics, ctx.now_ms).watch(runtime.informers, names, shards)
        async with asyncio.TaskGroup() as group:
            if reconcilers:
                group.create_task(shards.run(), name="shards")
                ctx.on_shutdown(Step.RELEASE_LEASE, "shards", shards.leave)
            group.create_task(runtime.run(), name="reconciling")
            for name, controller in controllers.items():
                if isinstance(controller, StatusController):
                    heartbeat = PlannerHeartbeat(
                        ctx.bus,
                        client,
                        namespace=settings.lease_namespace,
                        scheduler_names=settings.scheduler_name,
                        writes_statuses=controller.writes_statuses,
                    )
                    group.create_task(heartbeat.run(), name="planner-heartbeat")
                ctx.on_shutdown(Step.STOP_TAKING, name, controller.stop_taking)
                ctx.on_shutdown(Step.FINISH, name, controller.finish)
                group.create_task(controller.run(), name=name)
            # All run before the first is awaited: a kind that must not be listed delays only its
            # own controller.
            for name, controller in controllers.items():
                if isinstance(controller, Controller):
                    await controller.ready()
                if name in names:
                    ctx.ready.set(name)


def _make(
    name: str,
    ctx: Context[ControllerSettings],
    client: KubeClient,
    runtime: Runtime,
    shards: Shards,
) -> _Running:
    if name in RECONCILERS:
        return Controller(RECONCILERS[name](runtime, ctx), shards)
    if name == "podgroup":
        return PodGroupController(
            ctx.bus,
            client,
            _others(client, ctx.settings, VOLCANO_CONTROLLERS),
            ctx.foreign_messages.met,
        )
    reporting = Reporting(ctx.metrics, ctx.tracer)
    writer = IntentWriter(
        client,
        ctx.clock,
        reporting,
        writes_per_s=ctx.settings.writes_per_s,
        pod_events_per_s=ctx.settings.pod_events_per_s,
    )
    # Statuses of groups and pods are written by their scheduler, whose Lease has its name.
    others = _others(client, ctx.settings, *ctx.settings.scheduler_name)
    return StatusController(
        ctx.bus,
        writer,
        ctx.clock,
        reporting,
        others,
        ctx.foreign_messages.met,
        waiting_pod_events_per_s=ctx.settings.waiting_pod_events_per_s,
    )


def _others(client: KubeClient, settings: ControllerSettings, *leases: str) -> OtherControllers:
    return OtherControllers(client, leases, take_over=settings.take_over)


async def _wait_reachable(ctx: Context[ControllerSettings], client: KubeClient) -> None:
    backoff = Backoff(max_s=2.0)
    while True:
        try:
            await client.send("GET", "/version")
        except KubeError as error:
            ctx.ready.unready("kubernetes", str(error))
        else:
            ctx.ready.set("kubernetes")
            return
        await asyncio.sleep(backoff.next_s())
