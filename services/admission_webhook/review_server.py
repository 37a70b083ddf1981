"""Answers reviews over HTTPS.

Each path has a function from request to verdict. An answer waits, for a bounded time, in three
cases only: for a queue or a PriorityClass that may be known in a moment, for the planner's advice,
and for the API server's answer whether the PodGroup exists that a user's pod names.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from aiohttp import web

from services.admission_webhook.adviser import Adviser
from services.admission_webhook.core import fit_advice
from services.admission_webhook.core.configurations import (
    MUTATE_PATH,
    OPT_IN_OWNED_PATH,
    OPT_IN_PATH,
    PROBE,
    PROBE_PATH,
    VALIDATE_PATH,
    VOLCANO_MUTATE_PATHS,
    VOLCANO_VALIDATE_PATHS,
)
from services.admission_webhook.core.named_groups import named_group
from services.admission_webhook.core.opt_in import TakePod, take_owned_pod, take_pod
from services.admission_webhook.group_lookup import GroupLookup
from services.admission_webhook.reference_follower import ReferenceFollower
from services.admission_webhook.reporting import Reporting
from shared.admission.admission import (
    Subject,
    apply_defaults,
    subject_of,
    validate,
)
from shared.admission.parts import text_at
from shared.admission.resource_groups import ResourceGroups
from shared.admission.review import (
    AdmissionRequest,
    BadReview,
    Verdict,
    added,
    decode_review,
    encode_answer,
    plain_object,
)
from shared.admission.rules import ReferenceObjects
from shared.dialects.ceilings import DEFAULT_CEILINGS, Ceilings
from shared.kube.decoding import shallow
from shared.runtime.guarded_server import (
    BODY_BYTES_MAX,
    Bodies,
    GuardedServer,
    RequestRefused,
)
from shared.runtime.user_turns import UserTurns

#: Longer than the 90 s for which the API server keeps idle connections, so that it closes them.
KEEPALIVE_S: Final = 120.0
#: Time for requests in flight when the server stops.
SHUTDOWN_S: Final = 2.0
#: A queue or a PriorityClass that was created just before its first job is known here within some
#: tenths of a second, since CLUSTER is read in batches (docs/pacing.md). The API server waits three
#: seconds.
QUEUE_WAIT_S: Final = 1.0
#: An object may have been created right after its queue and its PriorityClass.
_REFERENCE_KINDS: Final = 2

T = TypeVar("T")

Answer: TypeAlias = Callable[[AdmissionRequest], Awaitable[Verdict]]
Validated: TypeAlias = Callable[[AdmissionRequest, Subject, Verdict, float], None]
"""Called with each validated object, its verdict, and the seconds that the validation took."""

#: Objects up to this length are judged on the event loop, in some milliseconds: those that users
#: write by hand. The longest take three seconds, and are judged in threads, which take the
#: interpreter's lock from the event loop for some milliseconds at a time.
_AT_ONCE_BYTES_MAX: Final = 16 * 1024
#: Threads, and those of one user.
_THREADS: Final = 2
_THREADS_OF_USER: Final = 1
#: Long reviews of one user that wait: the API server gives up after some seconds.
_WAITING_OF_USER_MAX: Final = 4

#: A refusal's text is cut at this length in the log.
_LOGGED_CHARACTERS_MAX: Final = 256

log = logging.getLogger(__name__)

_ALLOWED: Final = Verdict()
_JSON: Final = {"Content-Type": "application/json"}


class _Request(web.BaseRequest):
    """aiohttp's low-level request, with our limit.

    (`web.Application` would cost a sixth of a review's time, and none of its features is needed.)
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
        follower: ReferenceFollower,
        adviser: Adviser,
        lookup: GroupLookup,
        reporting: Reporting,
        *,
        groups: Callable[[], ResourceGroups] = tuple,
        ceilings: Ceilings = DEFAULT_CEILINGS,
        on_validated: Validated = lambda *_: None,
    ) -> None:
        self._scheduler_names = scheduler_names
        self._groups = groups
        self._ceilings = ceilings
        self._follower = follower
        self._adviser = adviser
        self._lookup = lookup
        self._reporting = reporting
        self._on_validated = on_validated
        self._paths: Mapping[str, Answer] = {
            MUTATE_PATH: self._mutate,
            VALIDATE_PATH: self._validate,
            OPT_IN_PATH: partial(self._opt_in, take_pod),
            OPT_IN_OWNED_PATH: partial(self._opt_in, take_owned_pod),
            PROBE_PATH: self._probe,
            **dict.fromkeys(VOLCANO_MUTATE_PATHS, self._mutate),
            **dict.fromkeys(VOLCANO_VALIDATE_PATHS, self._validate),
        }
        self._bodies = Bodies()
        self._turns = UserTurns(places=_THREADS, of_user=_THREADS_OF_USER)
        self._server: GuardedServer | None = None

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Listen, and return the port (chosen by the kernel if `port` is 0).

        Raises:
            OSError: The address is in use, or not one of this machine.
        """
        server = self._server = GuardedServer(
            self._handle,
            request_factory=partial(_Request, asyncio.get_running_loop()),
            keepalive_timeout=KEEPALIVE_S,
        )
        return await server.listen(host, port, context, shutdown_s=SHUTDOWN_S)

    async def stop(self) -> None:
        """Finish the requests in flight and stop listening. Safe to call twice."""
        if self._server is not None:
            await self._server.stop()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        path = self._paths.get(request.path)
        if path is None or request.method != "POST":
            return web.Response(status=404, text=f"there is only POST {', '.join(self._paths)}")
        if self._server is not None:
            self._server.note_request(request.protocol)
        try:
            async with self._bodies.read(request) as body:
                return await self._answered(path, body)
        except RequestRefused as refusal:
            self._reporting.reviewed(
                "too many" if refusal.status == HTTPStatus.TOO_MANY_REQUESTS else "malformed"
            )
            return refusal.response()

    async def _answered(self, path: Answer, body: bytes) -> web.Response:
        clock_s = asyncio.get_running_loop().time
        started_s = clock_s()
        try:
            review, verdict = await self._review_and_verdict(path, body)
        except (BadReview, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._reporting.reviewed("malformed")
            return web.Response(status=400, text=str(error))
        encoded = encode_answer(review.uid, verdict)
        self._reporting.review_seconds.observe(clock_s() - started_s)
        return web.Response(body=encoded, headers=_JSON)

    async def _review_and_verdict(
        self, path: Answer, body: bytes
    ) -> tuple[AdmissionRequest, Verdict]:
        """The review and its verdict; an object that is nested too deeply is cut before it is
        read.
        """
        try:
            review = decode_review(body)
            return review, await path(review)
        except RecursionError:
            # The user is not known yet: all such reviews are those of one user.
            review = decode_review(await self._in_thread("", partial(shallow, body)))
            return review, await path(review)

    async def _mutate(self, review: AdmissionRequest) -> Verdict:
        _, verdict = await self._judged_by(apply_defaults, review)
        if verdict is None:
            return _ALLOWED
        self._reporting.reviewed("changed" if verdict.patch else "allowed")
        return verdict

    async def _opt_in(self, take: TakePod, review: AdmissionRequest) -> Verdict:
        verdict = await self._judged(review, partial(take, review, self._scheduler_names))
        self._reporting.reviewed("changed" if verdict.patch else "not ours")
        return verdict

    async def _validate(self, review: AdmissionRequest) -> Verdict:
        clock_s = asyncio.get_running_loop().time
        began_s = clock_s()
        subject, verdict = await self._judged_by(validate, review)
        if subject is None or verdict is None:
            return _ALLOWED
        for _ in range(_REFERENCE_KINDS):
            if not await self._references_changed(verdict):
                break
            known = self._reference_objects()
            again = msgspec.structs.replace(subject.case, known=known)
            verdict = await self._judged(review, partial(validate, Subject(subject.rules, again)))
        self._reporting.reviewed("allowed" if verdict.allowed else "refused")
        if verdict.allowed:
            missing = await self._missing_group(review, subject)
            # A pod whose group is missing waits, wherever it would fit.
            advice = missing or await self._advice(review, subject)
            warnings = (*verdict.warnings, *advice)
            verdict = msgspec.structs.replace(verdict, warnings=warnings)
        else:
            _log_refusal(subject, verdict)
        self._on_validated(review, subject, verdict, clock_s() - began_s)
        return verdict

    async def _references_changed(self, verdict: Verdict) -> bool:
        """Wait for the queues and PriorityClasses that a refusal or a warning reports missing;
        whether they are there now.
        """
        if verdict.missing_queue:
            return await self._follower.wait_for_queue(verdict.missing_queue, QUEUE_WAIT_S)
        if verdict.missing_classes:
            return await self._follower.wait_for_classes(verdict.missing_classes, QUEUE_WAIT_S)
        if verdict.parent_queue:
            return await self._follower.wait_for_no_children(verdict.parent_queue, QUEUE_WAIT_S)
        return False

    async def _advice(self, review: AdmissionRequest, subject: Subject) -> tuple[str, ...]:
        """Warnings with the planner's advice on the gang."""
        request = await self._judged(review, partial(fit_advice.fit_request, subject, review))
        if request is None:
            return ()
        dry_run = bool(review.dry_run)
        answer = await self._adviser.fit(request, dry_run=dry_run)
        if answer is None:
            return ()
        namespace = subject.case.namespace
        return fit_advice.advice_warnings(answer, namespace=namespace, dry_run=dry_run)

    async def _missing_group(self, review: AdmissionRequest, subject: Subject) -> tuple[str, ...]:
        """Warnings of a group that a pod names and that does not exist."""
        named = named_group(subject, dry_run=bool(review.dry_run))
        return () if named is None else await self._lookup.warnings(named)

    async def _probe(self, review: AdmissionRequest) -> Verdict:
        """Answer a probe so that its sender sees that the API server reached this process."""
        nonce = text_at(plain_object(review.object), "metadata", "labels", PROBE)
        return Verdict(patch=(added({"reached": nonce}, "data"),)) if nonce else _ALLOWED

    async def _judged_by(
        self, rules: Callable[[Subject], Verdict], review: AdmissionRequest
    ) -> tuple[Subject | None, Verdict | None]:
        """What is reviewed, and its verdict; None: it is not ours."""
        known = self._reference_objects()

        def judge() -> tuple[Subject | None, Verdict | None]:
            subject = subject_of(review, known)
            return subject, None if subject is None else rules(subject)

        subject, verdict = await self._judged(review, judge)
        if subject is None:
            self._reporting.reviewed("not ours")
        return subject, verdict

    async def _judged(self, review: AdmissionRequest, judge: Callable[[], T]) -> T:
        """The result of `judge`, which reads the objects of a review: computed in its user's turn
        if they are long. Raises RequestRefused: 429, too many of them wait.
        """
        length = len(memoryview(review.object)) + len(memoryview(review.old_object))
        if length <= _AT_ONCE_BYTES_MAX:
            return judge()
        return await self._in_thread(review.user_info.username, judge)

    async def _in_thread(self, user: str, work: Callable[[], T]) -> T:
        """The result of long work. Raises RequestRefused: 429, too much of the user's waits."""
        if self._turns.waiting(user) >= _WAITING_OF_USER_MAX:
            raise RequestRefused(
                HTTPStatus.TOO_MANY_REQUESTS, "too many long reviews of the same user wait"
            )
        return await self._turns.run(user, partial(asyncio.to_thread, work))

    def _reference_objects(self) -> ReferenceObjects:
        queues = self._follower.queues
        self._reporting.queues_known(queues is not None)
        return ReferenceObjects(
            scheduler_names=self._scheduler_names,
            queues=queues,
            resource_groups=self._groups(),
            priority_classes=self._follower.priority_classes,
            namespace_queues=self._follower.namespace_queues,
            ceilings=self._ceilings,
        )


def _log_refusal(subject: Subject, verdict: Verdict) -> None:
    case = subject.case
    log.info(
        "refused %s of %s %s/%s: %s",
        case.operation,
        subject.rules.resource.kind,
        case.namespace,
        case.name,
        verdict.errors[0].text[:_LOGGED_CHARACTERS_MAX],
        extra={"object": f"{case.namespace}/{case.name}", "violations": len(verdict.errors)},
    )
