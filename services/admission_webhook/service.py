"""The asyncio shell: certificate, server, queues, advice and registration, wired and kept going.

Start: certificate, server, then everything at once. Ready: the server answers, the queues are known
(or none could be read for some seconds), and whether the API server reaches us is decided
either way. Stop: unregister first, answer what still comes, close.
"""

import asyncio
import hashlib
import logging
import socket
import tempfile
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from services.admission_webhook.admission_spans import AdmissionSpans
from services.admission_webhook.adviser import Adviser
from services.admission_webhook.certificates import (
    RENEW_EVERY_S,
    CertificateFiles,
    ServingCertificate,
)
from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.core.configurations import Address
from services.admission_webhook.errors import BadConfiguration
from services.admission_webhook.group_file import GroupFile
from services.admission_webhook.queue_follower import QueueFollower
from services.admission_webhook.registration import Identity, Registrar
from services.admission_webhook.reporting import Reporting
from services.admission_webhook.review_server import ReviewServer
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import KubeError
from shared.runtime.lifecycle import Context, Step
from shared.runtime.settings import SettingsError
from shared.telemetry.api_calls import ApiCalls

log = logging.getLogger(__name__)

#: The watcher needs a second or two to start. A webhook whose watcher is down is of more use
#: unready for no longer than this: it checks everything else.
QUEUES_PATIENCE_S: Final = 5.0


async def serve(ctx: Context[WebhookSettings]) -> None:
    """Run a webhook until it is stopped.

    Raises:
        CertificateProblem: The files given cannot be used.
        CredentialsError: It should register, and has no credentials.
        OSError: The port is taken, or the certificates' folder cannot be written.
    """
    await Webhook(ctx).run()


class Webhook:
    """One webhook process."""

    def __init__(self, ctx: Context[WebhookSettings]) -> None:
        """Make one; nothing happens before `run`."""
        settings = ctx.settings
        self._ctx = ctx
        self._reporting = Reporting(ctx.metrics)
        self._follower = QueueFollower(
            ctx.bus, ctx.ordinal, self._on_queues, ctx.foreign_messages.met
        )
        adviser = Adviser(
            ctx.bus,
            timeout_s=settings.advice_timeout_ms / 1000,
            on_end=self._reporting.advised,
        )
        try:
            self._groups = GroupFile(settings.admission_conf)
        except (BadConfiguration, OSError) as error:
            raise SettingsError(f"--admission-conf: {error}") from None
        self._server = ReviewServer(
            settings.scheduler_name,
            self._follower,
            adviser,
            self._reporting,
            groups=lambda: self._groups.groups,
            on_validated=AdmissionSpans(ctx.tracer, ctx.now_ms).validated,
        )
        #: Why the API server does not ask us; "" when it does.
        self._unregistered = ""
        #: URL of this process, once it listens.
        self.url = ""

    async def run(self) -> None:
        """Serve until cancelled."""
        ctx, settings = self._ctx, self._ctx.settings
        ctx.ready.require("serving", "queues", "registration")
        ctx.on_shutdown(Step.FINISH, "reviews", self._server.stop)
        if settings.cert_dir or settings.tls_cert_file:
            await self._serve(Path(settings.cert_dir))
            return
        with tempfile.TemporaryDirectory(prefix="tutti-webhook-") as scratch:
            await self._serve(Path(scratch))

    async def _serve(self, folder: Path) -> None:
        """Serve until cancelled, with our own certificates, if we need any, in `folder`."""
        ctx, settings = self._ctx, self._ctx.settings
        files = await asyncio.to_thread(_files, settings, folder)
        certificate = await asyncio.to_thread(ServingCertificate, files)
        self._reporting.serves(lambda: certificate.ends_s)
        port = await self._server.start(settings.host, settings.port, certificate.context)
        self.url = settings.webhook_url or f"https://{_url_host(settings.host)}:{port}"
        log.info("serving", extra={"url": self.url})
        ctx.ready.set("serving")
        asyncio.get_running_loop().call_later(QUEUES_PATIENCE_S, self._give_up_on_queues)
        ctx.spawn("queues", self._follower.run())
        if not settings.tls_cert_file:
            ctx.spawn("renewal", _renew(settings, folder))
        if settings.register:
            await self._registered(certificate)
            return
        self._on_registration("--no-register")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._groups.watch(lambda: None), name="resource-groups")
            tasks.create_task(certificate.watch(self._reporting.reloaded), name="certificate")

    async def _registered(self, certificate: ServingCertificate) -> None:
        """Be registered until cancelled."""
        ctx, settings = self._ctx, self._ctx.settings
        credentials = await load(settings.kubeconfig, settings.context)
        calls = ApiCalls(ctx.metrics)
        async with KubeClient(
            credentials, user_agent="tutti-admission-webhook", on_call=calls
        ) as client:
            registrar = Registrar(
                client,
                _identity(ctx),
                self._address(),
                lambda: certificate.ca,
                scheduler_names=settings.scheduler_name,
                probe_namespace=settings.probe_namespace,
                groups=lambda: self._groups.groups,
                name=settings.configuration_name,
                owner=settings.owner_cluster_role,
                on_state=self._on_registration,
            )
            ctx.on_shutdown(Step.STOP_TAKING, "registration", partial(_leave, registrar))

            def on_reload() -> None:
                self._reporting.reloaded()
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

    def _give_up_on_queues(self) -> None:
        if self._follower.queues is None:
            log.warning("the queues are not known: reviews are answered without checking them")
            self._ctx.ready.set("queues")

    def _on_registration(self, why: str) -> None:
        """Ready either way: what can be done is done, and no service depends on it."""
        self._reporting.registered(not why)
        if why and why != self._unregistered:
            log.warning("not registered: %s", why)
        self._unregistered = why
        self._ctx.ready.note("registration", why or self.url)
        self._ctx.ready.set("registration")


async def _leave(registrar: Registrar) -> None:
    try:
        await registrar.leave()
    except KubeError as error:
        log.warning("the registration stays until the next start: %s", error)


async def _renew(settings: WebhookSettings, folder: Path) -> None:
    """Renew our own certificate in time; `ServingCertificate.watch` sees the new file."""
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        try:
            await asyncio.to_thread(_files, settings, folder)
        except OSError as error:
            log.warning("the certificate cannot be renewed: %s", error)


def _files(settings: WebhookSettings, folder: Path) -> CertificateFiles:
    """The files given, or our own, made if need be. Blocks."""
    if settings.tls_cert_file:
        return CertificateFiles(
            certificate=Path(settings.tls_cert_file),
            key=Path(settings.tls_key_file),
            ca=Path(settings.ca_file),
        )
    # Late: a service with certificate files need not load the library.
    from services.admission_webhook.authority import CA_FILE, SERVING_FILE, ensure

    if ensure(folder, _names(settings)):
        log.info("made a serving certificate in %s", folder)
    serving = folder / SERVING_FILE
    return CertificateFiles(certificate=serving, key=serving, ca=folder / CA_FILE)


def _names(settings: WebhookSettings) -> list[str]:
    """What the API server will call us."""
    if settings.service_name:
        name = f"{settings.service_name}.{settings.service_namespace}.svc"
        return [name, f"{name}.cluster.local"]
    if settings.webhook_url:
        return [urlsplit(settings.webhook_url).hostname or ""]
    return [settings.host]


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _identity(ctx: Context[WebhookSettings]) -> Identity:
    """The same for this replica after a restart, and for no other one that may live beside it.

    Two suites on one machine differ in their folders. Without a folder only host and instance
    distinguish them.
    """
    folder = ctx.settings.tls_cert_file or ctx.settings.cert_dir
    where = str(Path(folder).absolute()) if folder else ""
    place = hashlib.sha256(where.encode()).hexdigest()[:8]
    return Identity(f"{socket.gethostname()}/{ctx.instance}/{place}")
