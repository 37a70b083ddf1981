"""The API service's shell: follows streams, serves HTTPS, and keeps itself registered."""

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from services.api.api_server import ApiServer
from services.api.authentication import Authenticator
from services.api.authorization import Authorizer
from services.api.config import ApiSettings
from services.api.core.gang_book import Place
from services.api.core.registration_objects import ServerAddress
from services.api.errors import RequestFailed
from services.api.followers import ClusterFollower, HistoryFollower, VerdictFollower
from services.api.gangs import GangResource
from services.api.manifest_readers import ManifestReaders
from services.api.planner_questions import InstanceQuestions, PlannerQuestions
from services.api.reads import (
    DecisionResource,
    InstanceResource,
    NodeResource,
    PodShapeResource,
    QueueResource,
)
from services.api.registration import Registrar
from services.api.reporting import Reporting
from services.api.resources import ExplanationResource, FitResource, SuggestionResource
from services.api.state import ApiState
from services.api.user_limits import UserLimits
from services.api.watches import Watching
from shared.contracts import subjects
from shared.contracts.visibility_resources import (
    DECISIONS,
    EXPLANATIONS,
    FITS,
    GANGS,
    INSTANCES,
    NODES,
    POD_SHAPES,
    QUEUES,
    SUGGESTIONS,
    ServedResource,
)
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import KubeError
from shared.runtime.lifecycle import Context, Step
from shared.runtime.serving_certificate import (
    ServingCertificate,
    certificate_folder,
    renew_own,
    serving_files,
    serving_identity,
)
from shared.telemetry.metrics import ApiCalls
from shared.telemetry.tracing import jaeger_trace_url, sampled


class TraceLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Where traces are shown."""

    #: Address of the user interface; None: traces have no addresses.
    jaeger_url: str | None = None
    #: Share of traces that is exported, from 0 to 1.
    ratio: float = 1.0

    def url_of(self, trace_id: str) -> str:
        """The address of a trace; "": there is none, or the trace is not exported."""
        if self.jaeger_url is None or not trace_id or not sampled(trace_id, self.ratio):
            return ""
        return jaeger_trace_url(self.jaeger_url, trace_id)


log = logging.getLogger(__name__)

#: Subject of our own certificate.
_TITLE: Final = "tutti-api"

#: When a refused watch may be tried again: watches last minutes.
_WATCH_RETRY_S: Final = 10
#: Reviews of many users at once; reviews are short.
_CONNECTIONS_MAX: Final = 64
#: Clients reconnect to NATS within a tenth of a second.
_WITHOUT_NATS_S: Final = 2.0
#: The planner's view is stale after this time, too.
_SILENT_S: Final = 5.0


async def serve(ctx: Context[ApiSettings]) -> None:
    """Serve until cancelled."""
    await ApiService(ctx).run()


class ApiService:
    def __init__(self, ctx: Context[ApiSettings]) -> None:
        self._ctx = ctx
        settings = ctx.settings
        links = TraceLinks(jaeger_url=settings.jaeger_url or None, ratio=settings.trace_ratio)
        self._state = ApiState(links.url_of)
        self._reporting = Reporting(ctx.metrics)
        self._watching = Watching(lambda: self._state.gangs)
        self._clusters = ClusterFollower(
            ctx.bus, ctx.ordinal, self._state, self._on_cluster, ctx.foreign_messages.met
        )
        self._verdicts = VerdictFollower(
            ctx.bus,
            ctx.ordinal,
            self._state,
            self._watching.changed,
            self._on_replaced,
            ctx.foreign_messages.met,
        )
        follow = partial(
            HistoryFollower, ctx.bus, ctx.ordinal, self._state, ctx.foreign_messages.met
        )
        decisions = follow(subjects.DECISIONS, subjects.DECISIONS)
        self._histories = (
            decisions,
            follow(subjects.DECISIONS, subjects.NOTES, after=decisions),
            follow(subjects.OUTCOMES, subjects.OUTCOMES, after=decisions),
        )
        self._readers = ManifestReaders()
        self._disconnected_s: float | None = None
        #: Why this process is not registered; "" when it is.
        self._unregistered = ""
        #: URL of this process; "" until it listens.
        self.url = ""

    async def run(self) -> None:
        """Serve until cancelled."""
        ctx, settings = self._ctx, self._ctx.settings
        ctx.ready.require("serving", "cluster", "verdicts")
        credentials = await load(settings.kubeconfig, settings.context)
        client = KubeClient(
            credentials,
            connections_max=_CONNECTIONS_MAX,
            user_agent="tutti-api",
            on_call=ApiCalls(ctx.metrics),
        )
        async with client:
            with certificate_folder(settings, "tutti-api-") as folder:
                await self._serve(client, folder)

    async def _serve(self, client: KubeClient, folder: Path) -> None:
        ctx, settings = self._ctx, self._ctx.settings
        files = await asyncio.to_thread(serving_files, settings, folder, _TITLE, _names(settings))
        certificate = await asyncio.to_thread(partial(ServingCertificate, asks_clients=True), files)
        self._reporting.certificate_ends.set_function(lambda: certificate.ends_s)
        authenticator = Authenticator(client, certificate.trust_clients)
        server = self._server(authenticator, Authorizer(client))
        port = await server.start(settings.host, settings.port, certificate.context)
        self.url = f"https://{settings.host}:{port}"
        log.info("serving", extra={"url": self.url})
        ctx.ready.note("api", self.url)
        ctx.ready.set("serving")
        ctx.on_shutdown(Step.FINISH, "requests", partial(self._stop, server))
        try:
            await self._follow(client, authenticator, certificate, folder, port)
        finally:
            # The next generation listens at the same address.
            await self._stop(server)

    async def _follow(
        self,
        client: KubeClient,
        authenticator: Authenticator,
        certificate: ServingCertificate,
        folder: Path,
        port: int,
    ) -> None:
        """Follow what is served and keep it registered, until cancelled."""
        ctx, settings = self._ctx, self._ctx.settings
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(authenticator.run(), name="front-proxy")
            tasks.create_task(certificate.watch(lambda: None), name="certificate")
            tasks.create_task(self._clusters.run(), name="follow-cluster")
            tasks.create_task(self._verdicts.run(), name="follow-verdicts")
            for follower in self._histories:
                tasks.create_task(follower.run(), name=follower.consumer)
            tasks.create_task(self._announce_verdicts(), name="verdicts-complete")
            if not settings.tls_cert_file:
                tasks.create_task(renew_own(folder, _TITLE, _names(settings)), name="renewal")
            if settings.register:
                registrar = self._registrar(client, certificate, port)
                ctx.on_shutdown(Step.STOP_TAKING, "registration", partial(_leave, registrar))
                ctx.ready.require("registration")
                tasks.create_task(registrar.run(), name="registration")
                tasks.create_task(self._announce_attempt(registrar), name="attempted")

    def _server(self, authenticator: Authenticator, authorizer: Authorizer) -> ApiServer:
        ctx = self._ctx
        questions, scheduler_names = PlannerQuestions(ctx.bus), ctx.settings.scheduler_name
        instances = InstanceQuestions(ctx.bus)
        gangs = GangResource(
            lambda: self._state.gangs,
            authorizer,
            self._watching,
            ctx.now_ms,
            questions.estimates,
        )
        self._reporting.gangs.set_function(lambda: len(self._state.gangs))
        self._reporting.watches.set_function(lambda: len(self._watching))
        return ApiServer(
            authenticator,
            authorizer,
            {
                GANGS.plural: gangs,
                QUEUES.plural: QueueResource(questions, authorizer),
                NODES.plural: NodeResource(self._state, authorizer),
                POD_SHAPES.plural: PodShapeResource(questions, self._state, authorizer),
                INSTANCES.plural: InstanceResource(instances),
                DECISIONS.plural: DecisionResource(lambda: self._state.decisions, authorizer),
            },
            {
                FITS.plural: FitResource(
                    self._readers.read, questions, authorizer, scheduler_names
                ),
                EXPLANATIONS.plural: ExplanationResource(self._readers.read, scheduler_names),
                SUGGESTIONS.plural: SuggestionResource(
                    lambda: self._state.gangs, questions, authorizer
                ),
            },
            gangs,
            self._reporting,
            watch_limits=UserLimits(
                "watches",
                in_all=ctx.settings.watches_max,
                of_user=ctx.settings.watches_of_user_max,
                retry_s=_WATCH_RETRY_S,
                flags=("--watches-max", "--watches-of-user-max"),
            ),
            unavailable=self._unavailable,
            warning=self._warning,
            now_ms=ctx.now_ms,
        )

    async def _stop(self, server: ApiServer) -> None:
        self._watching.end(None)
        await server.stop()
        await self._readers.stop()

    async def _announce_verdicts(self) -> None:
        await self._verdicts.complete.wait()
        self._ctx.ready.set("verdicts")

    async def _announce_attempt(self, registrar: Registrar) -> None:
        await registrar.attempted.wait()
        self._ctx.ready.set("registration")

    def _on_cluster(self, places: set[Place]) -> None:
        self._ctx.ready.set("cluster")
        self._watching.changed(places)

    def _on_replaced(self) -> None:
        self._watching.end(RequestFailed(410, "the gangs are read again: list again"))

    # What answers report about losses.

    def _unavailable(self, resource: ServedResource) -> str:
        """Why a resource cannot be served; "" while it can."""
        if resource.needs == "nothing":
            return ""
        now_s = asyncio.get_running_loop().time()
        if self._ctx.bus.connected:
            self._disconnected_s = None
        else:
            since_s = self._disconnected_s = self._disconnected_s or now_s
            if now_s - since_s >= _WITHOUT_NATS_S:
                return "the API service has no connection to NATS"
        if resource.needs == "services":
            return ""
        if not self._verdicts.complete.is_set():
            return "the API service has not read all gangs yet"
        if self._clusters.silent_s == float("inf"):
            return "the API service waits for the watcher's view of the cluster"
        return ""

    def _warning(self) -> str:
        silent_s = self._clusters.silent_s
        if _SILENT_S < silent_s < float("inf"):
            return f"no watcher has reported for {int(silent_s)} s: placements may be outdated"
        return ""

    # Registration.

    def _registrar(
        self, client: KubeClient, certificate: ServingCertificate, port: int
    ) -> Registrar:
        settings = self._ctx.settings
        address = ServerAddress(
            namespace=settings.service_namespace,
            service=settings.service_name,
            port=port if settings.external else settings.service_port,
            external=settings.external,
        )
        return Registrar(
            client,
            serving_identity(self._ctx.instance, settings.tls_cert_file or settings.cert_dir),
            address,
            settings.owner_cluster_role,
            lambda: certificate.ca,
            self._on_registration,
        )

    def _on_registration(self, why: str) -> None:
        self._reporting.registered.set(not why)
        if why and why != self._unregistered:
            log.warning("the API is not registered: %s", why)
        self._unregistered = why
        self._ctx.ready.note("registration", why or "registered")


async def _leave(registrar: Registrar) -> None:
    try:
        await registrar.leave()
    except KubeError as error:
        log.warning("the registration remains until the next start: %s", error)


def _names(settings: ApiSettings) -> list[str]:
    """The names and addresses under which the API server reaches this process."""
    service = f"{settings.service_name}.{settings.service_namespace}.svc"
    return [service, f"{service}.cluster.local", settings.host]
