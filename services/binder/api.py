"""The binder's requests to the API server; every failure is an `Answer`, which the core judges."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NoReturn

import msgspec

from services.binder.claims import KubeClaims
from services.binder.core.answers import TIMEOUT, Answer, PodView
from services.binder.core.claim_preparation import Preparation, Progress
from shared.contracts.decisions import Binding, Victim
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError, RequestTimeout, api_error
from shared.kube.resources import PODS
from shared.kube.transport import Reply
from shared.pacing import Backoff

_BOUND: Final = Answer(201)
#: Phase of a pod that is not removed: its controller would not create it again.
_SUCCEEDED: Final = "Succeeded"
#: Unanswered requests in a row after which the API server counts as unreachable.
_UNANSWERED_MAX: Final = 3
#: Longest pause between two requests that find out whether the API server answers.
_REACHABLE_PAUSE_S_MAX: Final = 2.0

OnHealth = Callable[[str], None]
"""Called when the API server becomes unreachable, with why, and with "" when it answers again."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduling_gates: list[Any] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    """The fields that a decision depends on. No other field is decoded, so none can fail."""

    metadata: _Metadata
    spec: _Spec
    status: _Status = _Status()


_decode_pod: Final = msgspec.json.Decoder(_Pod).decode


class KubePods:
    """Binds, reads and removes pods through one client."""

    def __init__(
        self,
        client: KubeClient,
        *,
        timeout_s: float,
        on_health: OnHealth,
        backoff: Backoff | None = None,
    ) -> None:
        """Send over `client`; every request has `timeout_s`. Reachable until shown otherwise.
        `backoff` paces the requests that find out whether the API server answers again.
        """
        self._client = client
        self._timeout_s = timeout_s
        self._on_health = on_health
        self._backoff = backoff or Backoff(max_s=_REACHABLE_PAUSE_S_MAX)
        self._unanswered = 0
        self._unreachable = asyncio.Event()
        self._claims = KubeClaims(self._send)

    async def wait_reachable(self) -> None:
        """Return once the API server has answered anything."""
        while True:
            try:
                await self._client.send("GET", "/version", timeout_s=self._timeout_s)
            except KubeError as error:
                self._on_health(str(error))
            else:
                self._backoff.reset()
                self._on_health("")
                return
            await asyncio.sleep(self._backoff.next_s())

    async def watch_reachable(self) -> NoReturn:
        """Whenever the API server became unreachable, send requests until it answers.

        Otherwise only the next decision would show that it is back: in a quiet cluster a binder
        would stay unready after an outage, and an upgrade that waits for it would hang.
        """
        while True:
            await self._unreachable.wait()
            await self.wait_reachable()
            self._unanswered = 0
            self._unreachable.clear()

    async def bind(self, binding: Binding, marks: Mapping[str, str], *, dry_run: bool) -> Answer:
        """Send a Binding. See `request_dispatcher.Pods`."""
        try:
            reply = await self._client.bind(
                binding.namespace,
                binding.name,
                binding.uid,
                binding.node,
                marks,
                dry_run=dry_run,
                timeout_s=self._timeout_s,
            )
        except KubeError as error:
            return self._no_answer(error)
        self._answered()
        return _BOUND if reply.status == 201 else _answer(reply)

    async def mark(self, victim: Victim, condition: Mapping[str, Any]) -> Answer:
        """Write a condition. See `request_dispatcher.Pods`."""
        # Merged by type, so that the pod's other conditions stay; a UID in a patch that is not the
        # object's own is answered with 422.
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        path = PODS.path(victim.namespace, victim.name, "status")
        answer, body = await self._send(
            "PATCH", path, patch, "application/strategic-merge-patch+json"
        )
        if not 200 <= answer.status < 300:
            return answer
        try:
            pod = _decode_pod(body)
        except msgspec.MsgspecError:
            # The condition is written; only the pod's phase is unknown.
            return answer
        return msgspec.structs.replace(answer, succeeded=pod.status.phase == _SUCCEEDED)

    async def delete(self, victim: Victim) -> Answer:
        """Delete a pod. See `request_dispatcher.Pods`."""
        # The pod's own grace period, as when its controller deletes it.
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": victim.uid},
        }
        return (await self._send("DELETE", PODS.path(victim.namespace, victim.name), options))[0]

    async def prepare(self, preparation: Preparation, *, again: bool) -> Progress:
        """Prepare a claim. See `request_dispatcher.Pods`."""
        return await self._claims.prepare(preparation, again=again)

    async def undo(self, preparation: Preparation) -> bool:
        """Undo a preparation. See `request_dispatcher.Pods`."""
        return await self._claims.undo(preparation)

    async def evict(self, victim: Victim, *, dry_run: bool) -> Answer:
        """Evict a pod. See `request_dispatcher.Pods`."""
        options: dict[str, object] = {"preconditions": {"uid": victim.uid}}
        if dry_run:
            options["dryRun"] = ["All"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": victim.name, "namespace": victim.namespace},
            "deleteOptions": options,
        }
        path = PODS.path(victim.namespace, victim.name, "eviction")
        return (await self._send("POST", path, eviction))[0]

    async def read(self, pod: Binding | Victim) -> PodView | Answer | None:
        """Read a pod. See `request_dispatcher.Pods`."""
        answer, body = await self._send("GET", PODS.path(pod.namespace, pod.name))
        if answer.status == 404:
            return None
        if answer.status != 200:
            return answer
        try:
            stored = _decode_pod(body)
        except msgspec.MsgspecError as error:
            return Answer(0, "Undecodable", str(error))
        return PodView(
            uid=stored.metadata.uid,
            node=stored.spec.node_name,
            deleting=stored.metadata.deletion_timestamp is not None,
            gated=bool(stored.spec.scheduling_gates),
            succeeded=stored.status.phase == _SUCCEEDED,
        )

    async def _send(
        self,
        method: Literal["GET", "PATCH", "DELETE", "POST"],
        path: str,
        body: object = None,
        content_type: str = "application/json",
    ) -> tuple[Answer, bytes]:
        """Return the answer, or the one that stands for a missing one, and its body."""
        try:
            reply = await self._client.send(
                method,
                path,
                body=None if body is None else msgspec.json.encode(body),
                content_type=content_type,
                timeout_s=self._timeout_s,
            )
        except KubeError as error:
            return self._no_answer(error), b""
        self._answered()
        return _answer(reply), reply.body

    def _answered(self) -> None:
        if self._unanswered >= _UNANSWERED_MAX:
            self._on_health("")
        self._unanswered = 0

    def _no_answer(self, error: KubeError) -> Answer:
        self._unanswered += 1
        if self._unanswered == _UNANSWERED_MAX:
            self._on_health(str(error))
            self._unreachable.set()
        reason = TIMEOUT if isinstance(error, RequestTimeout) else type(error).__name__
        return Answer(0, reason, str(error))


def _answer(reply: Reply) -> Answer:
    if reply.status < 400:
        return Answer(reply.status)
    error = api_error(reply.status, reply.body, reply.headers.get("Retry-After"))
    retry_after_ms = int((error.retry_after_s or 0) * 1000)
    return Answer(reply.status, error.reason, error.message, retry_after_ms)
