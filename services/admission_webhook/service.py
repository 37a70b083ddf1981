"""The asyncio shell of the webhook: wires certificate, server, reference objects and registration.

Start: certificate, server, then all other tasks. Ready: the server answers, the queues are known
(or have stayed unknown for some seconds), and a first attempt to register has ended. Stop:
unregister, answer the reviews that still arrive, close.
"""

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from services.admission_webhook.admission_spans import AdmissionSpans
from services.admission_webhook.adviser import Adviser
from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.core.configurations import Address
from services.admission_webhook.group_file import GroupFile
from services.admission_webhook.group_lookup import GroupLookup
from services.admission_webhook.reference_follower import ReferenceFollower
from services.admission_webhook.registration import Registrar
from services.admission_webhook.reporting import Reporting
from services.admission_webhook.review_server import ReviewServer
from shared.admission.resource_groups import BadConfiguration
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
from shared.runtime.settings import SettingsError
from shared.telemetry.metrics import ApiCalls

log = logging.getLogger(__name__)

#: Subject of our own certificate.
_TITLE: Final = "tutti-admission"

#: The watcher needs a second or two to start. A webhook without a watcher becomes ready after this
#: time, since it can apply all rules but those that need the queues.
QUEUES_TIMEOUT_S: Final = 5.0


async def serve(ctx: Context[WebhookSettings]) -> None:
    """Run a webhook until it is stopped.

    Raises:
        CertificateProblem: The configured files cannot be used.
        CredentialsError: Registration is on and there are no valid credentials.
        OSError: The port is in use, or the certificates' folder cannot be written.
    """
    await Webhook(ctx).run()


class Webhook:
    def __init__(self, ctx: Context[WebhookSettings]) -> None:
        """Nothing is sent or served before `run`.

        Raises:
            SettingsError: The admission configuration file cannot be used.
        """
        settings = ctx.settings
        self._ctx = ctx
        self._reporting = Reporting(ctx.metrics)
        self._follower = ReferenceFollower(
            ctx.bus, ctx.ordinal, self._on_queues, ctx.foreign_messages.met
        )
        adviser = Adviser(
            ctx.bus,
            timeout_s=settings.advice_timeout_ms / 1000,
            on_end=self._reporting.advised,
        )
        try:
            self._groups = GroupFile(settings.admission_conf)
        except (BadConfiguration, OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"--admission-conf {settings.admission_conf}: {error}") from None
        self._server = ReviewServer(
            settings.scheduler_name,
            self._follower,
            adviser,
            GroupLookup(lambda: self._client, self._reporting.looked_up),
            self._reporting,
            groups=lambda: self._groups.groups,
            ceilings=settings.ceilings,
            on_validated=AdmissionSpans(ctx.tracer, ctx.now_ms).validated,
        )
        #: Client of the API server; None while it is not open, and with `--no-register`.
        self._client: KubeClient | None = None
        #: Why this process is not registered; "" when it is.
        self._unregistered = ""
        #: URL of this process; "" until it listens.
        self.url = ""

    async def run(self) -> None:
        """Serve until cancelled."""
        ctx, settings = self._ctx, self._ctx.settings
        ctx.ready.require("serving", "queues", "registration")
        ctx.on_shutdown(Step.FINISH, "reviews", self._server.stop)
        try:
            with certificate_folder(settings, "tutti-webhook-") as folder:
                await self._serve(folder)
        finally:
            # The next generation listens at the same address.
            await self._server.stop()

    async def _serve(self, folder: Path) -> None:
        """Serve until cancelled. `folder` is for our own certificates, if they are needed."""
        ctx, settings = self._ctx, self._ctx.settings
        files = await asyncio.to_thread(serving_files, settings, folder, _TITLE, _names(settings))
        certificate = await asyncio.to_thread(ServingCertificate, files)
        self._reporting.certificate_ends.set_function(lambda: certificate.ends_s)
        port = await self._server.start(settings.host, settings.port, certificate.context)
        self.url = settings.webhook_url or f"https://{_url_host(settings.host)}:{port}"
        log.info("serving", extra={"url": self.url})
        ctx.ready.set("serving")
        asyncio.get_running_loop().call_later(QUEUES_TIMEOUT_S, self._start_without_queues)
        ctx.spawn("queues", self._follower.run())
        if not settings.tls_cert_file:
            ctx.spawn("renewal", renew_own(folder, _TITLE, _names(settings)))
        if settings.register:
            await self._keep_registered(certificate)
            return
        self._on_registration("--no-register")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._groups.watch(lambda: None), name="resource-groups")
            tasks.create_task(certificate.watch(self._reporting.reloads.inc), name="certificate")

    async def _keep_registered(self, certificate: ServingCertificate) -> None:
        ctx, settings = self._ctx, self._ctx.settings
        credentials = await load(settings.kubeconfig, settings.context)
        calls = ApiCalls(ctx.metrics)
        async with KubeClient(
            credentials, user_agent="tutti-admission-webhook", on_call=calls
        ) as client:
            self._client = client
            registrar = Registrar(
                client,
                settings,
                serving_identity(ctx.instance, settings.tls_cert_file or settings.cert_dir),
                self._address(),
                lambda: certificate.ca,
                groups=lambda: self._groups.groups,
                on_state=self._on_registration,
            )
            ctx.on_shutdown(Step.STOP_TAKING, "registration", partial(_leave, registrar))

            def on_reload() -> None:
                self._reporting.reloads.inc()
                registrar.wake()

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(registrar.run(), name="registration")
                tasks.create_task(certificate.watch(on_reload), name="certificate")
                tasks.create_task(self._groups.watch(registrar.wake), name="resource-groups")

    def _address(self) -> Address:
        settings = self._ctx.settings
        if settings.service_name:
            return Address(
                service_name=settings.service_name, service_namespace=settings.service_namespace
            )
        return Address(url=self.url)

    def _on_queues(self) -> None:
        self._reporting.queues_known(True)
        self._ctx.ready.set("queues")

    def _start_without_queues(self) -> None:
        if self._follower.queues is None:
            log.warning("the queues are unknown: reviews are answered without checking queues")
            self._ctx.ready.set("queues")

    def _on_registration(self, why: str) -> None:
        """Report an attempt to register. The process is ready either way: no service depends on the
        registration.
        """
        self._reporting.registered.set(not why)
        if why and why != self._unregistered:
            log.warning("the webhooks are not registered: %s", why)
        self._unregistered = why
        self._ctx.ready.note("registration", why or self.url)
        self._ctx.ready.set("registration")


async def _leave(registrar: Registrar) -> None:
    try:
        await registrar.leave()
    except KubeError as error:
        log.warning("the registration remains until the next start: %s", error)


def _names(settings: WebhookSettings) -> list[str]:
    """The names and addresses under which the API server reaches this process."""
    if settings.service_name:
        name = f"{settings.service_name}.{settings.service_namespace}.svc"
        return [name, f"{name}.cluster.local"]
    if settings.webhook_url:
        return [urlsplit(settings.webhook_url).hostname or ""]
    return [settings.host]


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
