"""A review server over TLS for tests, with queues and advice made of memory or real ones."""

import ssl
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import msgspec
from typing_extensions import override

from services.admission_webhook.adviser import Adviser
from services.admission_webhook.group_lookup import GroupLookup
from services.admission_webhook.reference_follower import ReferenceFollower
from services.admission_webhook.reporting import Reporting
from services.admission_webhook.review_server import ReviewServer
from shared.admission.queue_tree import QueueTree
from shared.contracts.questions import FitAnswer, FitRequest
from shared.runtime.serving_certificate import (
    CA_FILE,
    SERVING_FILE,
    CertificateFiles,
    ServingCertificate,
    ensure_certificate,
)
from shared.telemetry.metrics import Metrics
from tests.services.admission_webhook.reviews import NAMES, Object

if TYPE_CHECKING:
    from shared.kube.client import KubeClient
    from shared.model.objects import Queue

HOST = "127.0.0.1"


class MemoryQueues(ReferenceFollower):
    """Queues as a test sets them; those in `later` appear when a review waits for them."""

    def __init__(self) -> None:
        self.known: list[Queue] | None = []
        self.later: list[Queue] = []
        #: Queues that are gone when a review waits for that.
        self.ended: list[Queue] = []
        #: PriorityClasses; those in `later_classes` appear when a review waits for them.
        self.classes: frozenset[str] | None = None
        self.later_classes: frozenset[str] = frozenset()
        self.waited: list[str] = []
        self.of_namespaces: dict[str, str] = {}

    @property
    @override
    def queues(self) -> QueueTree | None:
        return None if self.known is None else QueueTree(self.known)

    @property
    @override
    def namespace_queues(self) -> dict[str, str]:
        return self.of_namespaces

    @property
    @override
    def priority_classes(self) -> frozenset[str] | None:
        return self.classes

    @override
    async def wait_for_queue(self, name: str, timeout_s: float) -> bool:
        self.waited.append(name)
        assert self.known is not None
        self.known += self.later
        return any(queue.name == name for queue in self.later)

    @override
    async def wait_for_classes(self, names: Collection[str], timeout_s: float) -> bool:
        self.waited += names
        assert self.classes is not None
        self.classes |= self.later_classes
        return self.classes.issuperset(names)

    @override
    async def wait_for_no_children(self, name: str, timeout_s: float) -> bool:
        self.waited.append(name)
        assert self.known is not None
        self.known = [one for one in self.known if one.parent != name or one not in self.ended]
        return not any(one.parent == name for one in self.known)


class MemoryAdviser(Adviser):
    """Answers as a test sets it."""

    def __init__(self) -> None:
        self.answer: FitAnswer | None = None
        self.asked: list[FitRequest] = []

    @override
    async def fit(self, request: FitRequest, *, dry_run: bool = False) -> FitAnswer | None:
        self.asked.append(request)
        return self.answer


class Webhook:
    """A running server and a client of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queues = MemoryQueues()
        self.adviser = MemoryAdviser()
        self.metrics = Metrics("admission-webhook")
        reporting = Reporting(self.metrics)
        #: Client of an API server, if a test sets one.
        self.client: KubeClient | None = None
        lookup = GroupLookup(lambda: self.client, reporting.looked_up)
        self.server = ReviewServer(NAMES, self.queues, self.adviser, lookup, reporting)
        self.url = ""
        self.certificate = own_certificate(folder)
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None
        return self._session

    def trust(self) -> ssl.SSLContext:
        """What a client must trust."""
        return ssl.create_default_context(cadata=self.certificate.ca)

    async def post(self, path: str, body: bytes) -> tuple[int, Object]:
        """Send a body; the status and the answer's `response` (or its text)."""
        async with self.session.post(
            self.url + path, data=BytesIO(body), ssl=self.trust()
        ) as answer:
            content = await answer.read()
            if answer.status != 200:
                return answer.status, {"text": content.decode()}
            return answer.status, msgspec.json.decode(content)["response"]

    async def validate(self, body: bytes) -> Object:
        """The response to a review on /validate."""
        status, response = await self.post("/validate", body)
        assert status == 200, response
        return response

    def figure(self, name: str) -> float:
        """One of the metrics."""
        return self.metrics.figures().get(name, 0.0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Webhook"]:
        """Serve on a free port."""
        port = await self.server.start(HOST, 0, self.certificate.context)
        self.url = f"https://{HOST}:{port}"
        try:
            async with aiohttp.ClientSession() as session:
                self._session = session
                yield self
        finally:
            await self.server.stop()


def own_certificate(folder: Path) -> ServingCertificate:
    """A certificate for this machine, made in the folder."""
    ensure_certificate(folder, "tutti-admission", [HOST])
    files = CertificateFiles(
        certificate=folder / SERVING_FILE, key=folder / SERVING_FILE, ca=folder / CA_FILE
    )
    return ServingCertificate(files)
