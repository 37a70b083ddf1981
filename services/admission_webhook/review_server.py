"""Answers reviews over HTTPS.

A path is a function from request to verdict; adding one is one line. Nothing here calls the API
server. What waits, waits for a bounded time, and only where the answer would be a refusal for a
queue that may appear, or may carry the planner's advice.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from aiohttp import web

from services.admission_webhook.adviser import Adviser
from services.admission_webhook.core import gangs
from services.admission_webhook.core.case import ReferenceObjects
from services.admission_webhook.core.configurations import (
    MUTATE_PATH,
    PROBE,
    PROBE_PATH,
    VALIDATE_PATH,
    VOLCANO_MUTATE_PATHS,
    VOLCANO_VALIDATE_PATHS,
)
from services.admission_webhook.core.judge import (
    Subject,
    defaults,
    knowing,
    subject,
    violations,
)
from services.admission_webhook.core.parts import text_at
from services.admission_webhook.core.resource_groups import ResourceGroups
from services.admission_webhook.core.review import (
    AdmissionRequest,
    Verdict,
    added,
    decode_review,
    encode_answer,
    plain_object,
)
from services.admission_webhook.errors import BadReview
from services.admission_webhook.guarded_server import (
    BODY_BYTES_MAX,
    Bodies,
    GuardedServer,
    Unwelcome,
)
from services.admission_webhook.queue_follower import QueueFollower
from services.admission_webhook.reporting import Reporting
from shared.kube.nesting import shallow

#: The API server keeps idle connections for 90 s; it is the one to close them.
KEEPALIVE_S: Final = 120.0
#: For requests in flight at the end.
SHUTDOWN_S: Final = 2.0
#: A queue made just before its first job is seen by us after some milliseconds, or some tenths of a
#: second: we read in looks (ADR 0014). The API server waits three seconds.
QUEUE_WAIT_S: Final = 1.0

Answer: TypeAlias = Callable[[AdmissionRequest], Awaitable[Verdict]]
Validated: TypeAlias = Callable[[AdmissionRequest, Subject, Verdict, float], None]
"""Called with each object that was validated, and how many seconds that took."""

#: Of a user's mistake, so much is logged.
_TOLD_CHARACTERS_MAX: Final = 256

log = logging.getLogger(__name__)

_ALLOWED: Final = Verdict()
_JSON: Final = {"Content-Type": "application/json"}


class _Request(web.BaseRequest):
    """aiohttp's low-level request, with our limit.

    (Its application, which we have no use for, would cost a sixth of a review's time: measured.)
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        message: Any,
        payload: Any,
        protocol: Any,
        writer: Any,
        task: "asyncio.Task[None]",
    ) -> None:
        super().__init__(
            message, payload, protocol, writer, task, loop, client_max_size=BODY_BYTES_MAX
        )


class ReviewServer:
    """The HTTPS server. `start` it, `stop` it."""

    def __init__(
        self,
        scheduler_names: tuple[str, ...],
        follower: QueueFollower,
        adviser: Adviser,
        reporting: Reporting,
        *,
        groups: Callable[[], ResourceGroups] = tuple,
        on_validated: Validated = lambda *_: None,
    ) -> None:
        self._scheduler_names = scheduler_names
        self._groups = groups
        self._follower = follower
        self._adviser = adviser
        self._reporting = reporting
        self._on_validated = on_validated
        self._paths: Mapping[str, Answer] = {
            MUTATE_PATH: self._mutate,
            VALIDATE_PATH: self._validate,
            PROBE_PATH: self._probe,
            **dict.fromkeys(VOLCANO_MUTATE_PATHS, self._mutate),
            **dict.fromkeys(VOLCANO_VALIDATE_PATHS, self._validate),
        }
        self._bodies = Bodies()
        self._server: GuardedServer | None = None
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Listen, and return the port (chosen by the kernel if `port` is 0).

        Raises:
            OSError: The address is taken, or not ours.
        """
        server = self._server = GuardedServer(
            self._handle,
            request_factory=partial(_Request, asyncio.get_running_loop()),
            access_log=None,
            keepalive_timeout=KEEPALIVE_S,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=context, backlog=1024)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Finish what is in flight and stop listening. Safe to call twice."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        path = self._paths.get(request.path)
        if path is None or request.method != "POST":
            return web.Response(status=404, text=f"there is only POST {', '.join(self._paths)}")
        if self._server is not None:
            self._server.heard(request.protocol)
        try:
            async with self._bodies.read(request) as body:
                return await self._answered(path, body)
        except Unwelcome as unwelcome:
            self._reporting.reviewed("malformed")
            return unwelcome.response()

    async def _answered(self, path: Answer, body: bytes) -> web.Response:
        clock_s = asyncio.get_running_loop().time
        started_s = clock_s()
        try:
            review, verdict = await _judged(path, body)
        except (BadReview, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._reporting.reviewed("malformed")
            return web.Response(status=400, text=str(error))
        encoded = encode_answer(review.uid, verdict)
        self._reporting.review_seconds.observe(clock_s() - started_s)
        return web.Response(body=encoded, headers=_JSON)

    async def _mutate(self, review: AdmissionRequest) -> Verdict:
        asked = self._subject(review)
        if asked is None:
            return _ALLOWED
        verdict = defaults(asked)
        self._reporting.reviewed("changed" if verdict.patch else "allowed")
        return verdict

    async def _validate(self, review: AdmissionRequest) -> Verdict:
        asked = self._subject(review)
        if asked is None:
            return _ALLOWED
        clock_s = asyncio.get_running_loop().time
        began_s = clock_s()
        verdict = await self._checked(asked)
        self._reporting.reviewed("allowed" if verdict.allowed else "refused")
        if verdict.allowed:
            verdict = await self._advised(review, asked, verdict)
        else:
            _tell_refusal(asked, verdict)
        self._on_validated(review, asked, verdict, clock_s() - began_s)
        return verdict

    async def _checked(self, asked: Subject) -> Verdict:
        verdict = violations(asked)
        if verdict.missing_queue and await self._follower.appeared(
            verdict.missing_queue, QUEUE_WAIT_S
        ):
            return violations(knowing(asked, self._known()))
        return verdict

    async def _advised(self, review: AdmissionRequest, asked: Subject, verdict: Verdict) -> Verdict:
        question = gangs.question(asked, review)
        if question is None:
            return verdict
        tried = bool(review.dry_run)
        answer = await self._adviser.fit(question, patient=tried)
        if answer is None:
            return verdict
        more = gangs.advice(answer, namespace=asked.case.namespace, dry_run=tried)
        return msgspec.structs.replace(verdict, warnings=(*verdict.warnings, *more))

    async def _probe(self, review: AdmissionRequest) -> Verdict:
        """Show the sender that the API server got through to us."""
        nonce = text_at(plain_object(review.object), "metadata", "labels", PROBE)
        return Verdict(patch=(added({"reached": nonce}, "data"),)) if nonce else _ALLOWED

    def _subject(self, review: AdmissionRequest) -> Subject | None:
        asked = subject(review, self._known())
        if asked is None:
            self._reporting.reviewed("not ours")
        return asked

    def _known(self) -> ReferenceObjects:
        queues = self._follower.queues
        self._reporting.queues_known(queues is not None)
        return ReferenceObjects(
            scheduler_names=self._scheduler_names,
            queues=queues,
            resource_groups=self._groups(),
            priority_classes=self._follower.priority_classes,
            namespace_queues=self._follower.namespace_queues,
        )


async def _judged(path: Answer, body: bytes) -> tuple[AdmissionRequest, Verdict]:
    """The review and the verdict on it; of what is nested beyond reading, on what can be read."""
    try:
        review = decode_review(body)
        return review, await path(review)
    except RecursionError:
        review = decode_review(shallow(body))
        return review, await path(review)


def _tell_refusal(asked: Subject, verdict: Verdict) -> None:
    case = asked.case
    log.info(
        "refused %s of %s %s/%s: %s",
        case.operation,
        asked.guarded.resource.kind,
        case.namespace,
        case.name,
        verdict.errors[0].text[:_TOLD_CHARACTERS_MAX],
        extra={"object": f"{case.namespace}/{case.name}", "violations": len(verdict.errors)},
    )
