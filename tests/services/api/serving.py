"""The HTTPS server in this process, with users and rights that a test sets, and a planner that
answers what the test says.
"""

import io
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from aiohttp import web
from typing_extensions import override

from services.api.api_server import ApiServer
from services.api.authentication import User
from services.api.authorization import Authorizer
from services.api.core.fit_objects import GangQuestion
from services.api.core.gang_objects import TraceUrl, no_trace_url
from services.api.core.manifest_questions import ManifestQuestion, ManifestReply, reply_to
from services.api.core.start_estimates import StartEstimates
from services.api.errors import RequestFailed, TokenRefused
from services.api.gangs import GangResource
from services.api.planner_questions import InstanceQuestions, PlannerQuestions
from services.api.reads import (
    DecisionResource,
    InstanceResource,
    NodeResource,
    PodShapeResource,
    QueueResource,
)
from services.api.reporting import Reporting
from services.api.resources import ExplanationResource, FitResource, SuggestionResource
from services.api.state import ApiState
from services.api.user_limits import UserLimits
from services.api.watches import Watching
from shared.contracts.questions import (
    FitAnswer,
    FragmentationAnswer,
    LedgerAnswer,
    ServiceStatus,
    SuggestionsAnswer,
)
from shared.contracts.verdicts import Verdict
from shared.runtime.serving_certificate import (
    CertificateFiles,
    ServingCertificate,
    ensure_certificate,
)
from shared.telemetry.metrics import Metrics
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.services.api.scene import FIRST_SEEN_MS, GROUP_PATH

if TYPE_CHECKING:
    from services.api.resources import ReadManifests

#: A token that the cluster does not accept.
REFUSED: Final = "refused"


class Users:
    """In place of the Authenticator: users are their tokens."""

    async def authenticate(self, request: web.BaseRequest) -> User:
        _, _, name = request.headers.get("Authorization", "").partition("Bearer ")
        if not name:
            raise RequestFailed(401, "a bearer token of this cluster is needed")
        if name == REFUSED:
            raise TokenRefused
        return User(name=name)


class Rights:
    """In place of the API server: answers SubjectAccessReviews."""

    def __init__(self) -> None:
        #: Namespaces whose pods each user may list; "": of all.
        self.namespaces: dict[str, set[str]] = {"admin": {""}}
        #: Users without rights to the API service's own resources.
        self.strangers: set[str] = set()
        #: User, verb and resource of further refusals.
        self.refused: set[tuple[str, str, str]] = set()
        self.asked = 0

    async def create(self, _resource: object, manifest: dict[str, Any]) -> Any:
        self.asked += 1
        spec = manifest["spec"]
        action = spec["resourceAttributes"]
        seen = self.namespaces.get(spec["user"], set())
        if action["group"]:
            wanted = (spec["user"], action["verb"], action["resource"])
            allowed = spec["user"] not in self.strangers and wanted not in self.refused
        else:
            allowed = "" in seen or action["namespace"] in seen
        body = b'{"status":{"allowed":true}}' if allowed else b"{}"
        return type("Reply", (), {"body": body})


class Planner(PlannerQuestions):
    """In place of the planner."""

    def __init__(self) -> None:
        self.queues = LedgerAnswer(queues=())
        self.fit = FitAnswer(fits=True, ever=True)
        self.shapes = FragmentationAnswer()
        self.starts = StartEstimates()
        self.suggested = SuggestionsAnswer()
        #: Ids of the gangs that were asked about.
        self.asked: list[str] = []

    @override
    async def ledger(self) -> LedgerAnswer:
        return self.queues

    @override
    async def fragmentation(self) -> FragmentationAnswer:
        return self.shapes

    @override
    async def estimates(self) -> StartEstimates:
        return self.starts

    @override
    async def fits(self, user: str, questions: Sequence[GangQuestion]) -> list[FitAnswer]:
        return [self.fit for _ in questions]

    @override
    async def suggestions(self, user: str, gang_id: str) -> SuggestionsAnswer:
        self.asked.append(gang_id)
        return self.suggested


class Instances(InstanceQuestions):
    """In place of all services."""

    def __init__(self) -> None:
        self.answers: list[ServiceStatus] = []

    @override
    async def statuses(self) -> Sequence[ServiceStatus]:
        return self.answers


class Client:
    """Requests of users."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = f"{url}{GROUP_PATH}"
        self.session = session

    async def get(
        self, path: str, *, user: str = "admin", status: int = 200, **headers: str
    ) -> dict[str, Any]:
        """An answer's JSON; its status is as expected."""
        given = {"Authorization": f"Bearer {user}", **headers}
        async with self.session.get(f"{self.url}{path}", headers=given) as response:
            assert response.status == status, await response.text()
            found: dict[str, Any] = await response.json()
            return found

    async def create(
        self, path: str, body: bytes, *, user: str = "admin", status: int = 201
    ) -> dict[str, Any]:
        """The answer to an object; its status is as expected."""
        given = {"Authorization": f"Bearer {user}"}
        async with self.session.post(
            f"{self.url}{path}", data=io.BytesIO(body), headers=given
        ) as response:
            assert response.status == status, await response.text()
            found: dict[str, Any] = await response.json()
            return found

    async def names(self, path: str, *, user: str = "admin") -> list[str]:
        """Namespace and name of each item of a list."""
        items = (await self.get(path, user=user))["items"]
        return [
            "/".join(filter(None, (one["metadata"].get("namespace"), one["metadata"]["name"])))
            for one in items
        ]


async def read_here(_user: str, question: ManifestQuestion) -> ManifestReply:
    """The reply of the process that reads manifests, without the process."""
    reply = reply_to(question)
    if reply.refused is not None:
        raise RequestFailed(reply.refused, reply.message, causes=reply.causes)
    return reply


class Serving:
    """The server and what it answers from."""

    def __init__(self, trace_url: TraceUrl = no_trace_url) -> None:
        self.state = ApiState(trace_url)
        self.rights = Rights()
        self.planner = Planner()
        self.instances = Instances()
        self.watching = Watching(lambda: self.state.gangs)
        self.metrics = Metrics("api")
        self.unavailable = ""
        self.warning = ""
        #: In place of the processes that read manifests.
        self.read: ReadManifests = read_here
        self.watches_max = 3
        self.watches_of_user_max = 2

    def publish(self, seq: int, one: Verdict) -> None:
        """Take a verdict as the next record, and send its changes to watches."""
        self.watching.changed(self.state.take_verdict(seq, one))

    async def _read(self, user: str, question: ManifestQuestion) -> ManifestReply:
        return await self.read(user, question)

    def server(self) -> ApiServer:
        authorizer = Authorizer(self.rights)  # type: ignore[arg-type]  # sends reviews only
        now_ms: Callable[[], int] = lambda: FIRST_SEEN_MS + 60_000  # noqa: E731
        gangs = GangResource(
            lambda: self.state.gangs, authorizer, self.watching, now_ms, self.planner.estimates
        )
        return ApiServer(
            Users(),  # type: ignore[arg-type]  # as the Authenticator
            authorizer,
            {
                "gangs": gangs,
                "queues": QueueResource(self.planner, authorizer),
                "nodes": NodeResource(self.state, authorizer),
                "podshapes": PodShapeResource(self.planner, self.state, authorizer),
                "instances": InstanceResource(self.instances),
                "decisions": DecisionResource(lambda: self.state.decisions, authorizer),
            },
            {
                "fits": FitResource(self._read, self.planner, authorizer, ("tutti",)),
                "explanations": ExplanationResource(self._read, ("tutti",)),
                "suggestions": SuggestionResource(
                    lambda: self.state.gangs, self.planner, authorizer
                ),
            },
            gangs,
            Reporting(self.metrics),
            watch_limits=UserLimits(
                "watches",
                in_all=self.watches_max,
                of_user=self.watches_of_user_max,
                retry_s=10,
                flags=("--watches-max", "--watches-of-user-max"),
            ),
            unavailable=lambda one: self.unavailable if one.needs != "nothing" else "",
            warning=lambda: self.warning,
            now_ms=now_ms,
        )


@asynccontextmanager
async def a_server(serving: Serving, folder: Path) -> AsyncIterator[Client]:
    """A client of the server, for the length of the block."""
    ensure_certificate(folder, "test", ["127.0.0.1"])
    pem = folder / "serving.pem"
    certificate = ServingCertificate(
        CertificateFiles(certificate=pem, key=pem, ca=folder / "ca.crt")
    )
    server = serving.server()
    port = await server.start("127.0.0.1", 0, certificate.context)
    context = ssl.create_default_context(cadata=certificate.ca)
    try:
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Client(f"https://127.0.0.1:{port}", session)
    finally:
        serving.watching.end(None)
        await server.stop()


def kubeconfig_of(client: Client, folder: Path, user: str = "admin", namespace: str = "a") -> Path:
    """A kubeconfig with which a user reaches the server directly."""
    return write_kubeconfig(
        folder / f"{user}-{namespace}.kubeconfig",
        server=client.url.removesuffix(GROUP_PATH),
        ca_pem=(folder / "ca.crt").read_bytes(),
        credentials=user,
        namespace=namespace,
    )
