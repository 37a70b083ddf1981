"""Reads claims from the API server, and sends the writes of `core.claim_preparation`."""

from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from services.binder.core.answers import Answer
from services.binder.core.claim_preparation import (
    DONE,
    POD_IS_BOUND,
    POD_IS_GONE,
    Preparation,
    Progress,
    Write,
    device_step,
    device_undo,
    is_leaving,
    needs_classes,
    needs_volume,
    pod_step,
    protect,
    volume_step,
    volume_undo,
)
from services.binder.core.device_allocation import Object
from services.binder.core.extended_claim import GATE_IS_OFF, has_status, status_undo
from shared.contracts.decisions import DeviceChoice, VolumeChoice
from shared.kube.resources import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIMS,
    VOLUME_CLAIMS,
    VOLUMES,
)

Send: TypeAlias = Callable[
    [Literal["GET", "PATCH", "POST"], str, object, str], Awaitable[tuple[Answer, bytes]]
]
"""Sends one request (method, path, body, content type); returns the answer and its body."""

_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
#: There is no such claim, or another one has its name, or it is being deleted.
_NOT_WRITTEN: Final = frozenset({404, 409, 422})
#: Writes of one claim: itself or its finalizer, then its status.
_WRITES_MAX: Final = 2
_decode: Final = msgspec.json.Decoder(Object).decode


class _Unanswered(Exception):
    """The API server returned neither the object nor a 404."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


class KubeClaims:
    """Prepares claims and undoes that; both are idempotent."""

    def __init__(self, send: Send) -> None:
        """Send over `send`, which never raises."""
        self._send = send

    async def prepare(self, preparation: Preparation, *, again: bool) -> Progress:
        """Write what the claim needs now, and return how far it is prepared."""
        try:
            progress = await self._prepare(preparation, again=again)
            if progress == DONE and isinstance(preparation.choice, DeviceChoice):
                return await self._name_claim(preparation, preparation.choice)
        except _Unanswered as unanswered:
            return _refused(unanswered.answer)
        return progress

    async def undo(self, preparation: Preparation) -> bool:
        """Undo a preparation that no controller has completed. The choice of a volume may stay.

        Returns:
            False when it must be tried again: a write was not answered, and carried out late it
            would take devices from a pod that may use them by then; or the claim may still have its
            devices, and no other claim may get them; or the pod's status still names the claim.
        """
        choice = preparation.choice
        try:
            if isinstance(choice, DeviceChoice):
                if not await self._forget_claim(preparation, choice):
                    return False
                write = device_undo(await self._devices(choice), choice)
            else:
                claim, volume = await self._claim_and_volume(choice)
                write = volume_undo(claim, volume, choice)
        except _Unanswered:
            return not isinstance(choice, DeviceChoice)
        if write is None:
            return True
        answer, _ = await self._write(preparation, write)
        if isinstance(choice, DeviceChoice):
            return _is_done(answer)
        return not _leaves_doubt(answer)

    async def _prepare(self, preparation: Preparation, *, again: bool) -> Progress:
        # The claim as the last write left it: the answer says so, which saves a read.
        written = None if again else await self._protect(preparation)
        for _ in range(_WRITES_MAX + 1):
            step = await self._step(preparation, written, again=again)
            if isinstance(step, Progress):
                return step
            if step.kind in {"devices/create", "devices/status"}:
                objection = await self._objection_of_pod(preparation)
                if objection is not None:
                    return objection
            answer, body = await self._write(preparation, step)
            if not 200 <= answer.status < 300:
                refused = _refused(answer)
                if step.kind == "devices/status" and _leaves_doubt(answer):
                    return msgspec.structs.replace(refused, in_doubt=True)
                return refused
            if step.kind in {"claim", "volume"}:
                return Progress("waiting")
            written = _decoded(body)
        return Progress("again", "it changes all the time")

    async def _protect(self, preparation: Preparation) -> Object | None:
        """Give a claim its finalizer, whatever else it is; returns the claim. None: the claim must
        be read, because nothing was written.
        """
        choice = preparation.choice
        write = protect(choice) if isinstance(choice, DeviceChoice) else None
        if write is None:
            return None
        answer, body = await self._write(preparation, write)
        if answer.status in _NOT_WRITTEN:
            return None
        if answer.status != 200:
            raise _Unanswered(answer)
        return _decoded(body)

    async def _name_claim(self, preparation: Preparation, choice: DeviceChoice) -> Progress:
        """Write the name of a claim for extended resources into the pod's status."""
        of = choice.extended
        if of is None:
            return DONE
        step = pod_step(await self._pod(preparation), choice)
        if isinstance(step, Progress):
            return step
        answer, body = await self._write(preparation, step)
        if not 200 <= answer.status < 300:
            refused = _refused(answer)
            return msgspec.structs.replace(refused, in_doubt=_leaves_doubt(answer))
        try:
            stored = has_status(_decode(body), choice, of)
        except msgspec.MsgspecError as error:
            return Progress("again", str(error))
        return DONE if stored else Progress("failed", GATE_IS_OFF)

    async def _forget_claim(self, preparation: Preparation, choice: DeviceChoice) -> bool:
        """Remove it from there; False: it may still be there."""
        if choice.extended is None:
            return True
        patch = status_undo(await self._pod(preparation), choice)
        if patch is None:
            return True
        answer, _ = await self._write(preparation, Write("pod/status", patch))
        return _is_done(answer)

    async def _step(
        self, preparation: Preparation, written: Object | None, *, again: bool
    ) -> Progress | Write:
        choice = preparation.choice
        if isinstance(choice, DeviceChoice):
            stored = written if written is not None else await self._devices(choice)
            classes = await self._classes(choice) if needs_classes(stored, choice) else {}
            return device_step(stored, choice, preparation.pod_name, classes)
        claim, volume = await self._claim_and_volume(choice)
        return volume_step(claim, volume, choice, again=again)

    async def _claim_and_volume(self, choice: VolumeChoice) -> tuple[Object | None, Object | None]:
        claim = await self._read(VOLUME_CLAIMS.path(choice.namespace, choice.claim))
        needed = needs_volume(claim, choice)
        return claim, await self._read(VOLUMES.path("", choice.volume)) if needed else None

    async def _devices(self, choice: DeviceChoice) -> Object | None:
        return await self._read(RESOURCE_CLAIMS.path(choice.namespace, choice.claim))

    async def _classes(self, choice: DeviceChoice) -> dict[str, Object]:
        stored = {name: await self._read(DEVICE_CLASSES.path("", name)) for name in choice.classes}
        return {
            name: device_class for name, device_class in stored.items() if device_class is not None
        }

    async def _read(self, path: str) -> Object | None:
        answer, body = await self._send("GET", path, None, "")
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise _Unanswered(answer)
        return _decoded(body)

    async def _objection_of_pod(self, preparation: Preparation) -> Progress | None:
        """Why no devices are allocated for the pod: it is gone, or has been bound before and may
        have ended. The planner may have given them to another claim then. None: it waits.
        """
        choice = preparation.choice
        if not isinstance(choice, DeviceChoice) or not choice.devices:
            return None
        pod = await self._pod(preparation)
        if pod is None or is_leaving(pod, choice.pod_uid):
            return POD_IS_GONE
        return POD_IS_BOUND if pod.get("spec", {}).get("nodeName") else None

    async def _pod(self, preparation: Preparation) -> Object | None:
        return await self._read(PODS.path(preparation.choice.namespace, preparation.pod_name))

    async def _write(self, preparation: Preparation, write: Write) -> tuple[Answer, bytes]:
        choice = preparation.choice
        namespace, claim = choice.namespace, choice.claim
        content_type = _STRATEGIC if write.kind == "devices" else _MERGE
        match write.kind:
            case "devices/create":
                path = RESOURCE_CLAIMS.path(namespace)
                return await self._send("POST", path, write.patch, "application/json")
            case "devices":
                path = RESOURCE_CLAIMS.path(namespace, claim)
            case "devices/status":
                path = RESOURCE_CLAIMS.path(namespace, claim, "status")
            case "pod/status":
                path = PODS.path(namespace, preparation.pod_name, "status")
            case "volume":
                path = VOLUMES.path("", choice.volume if isinstance(choice, VolumeChoice) else "")
            case "claim":
                path = VOLUME_CLAIMS.path(namespace, claim)
            case _:
                assert_never(write.kind)
        return await self._send("PATCH", path, write.patch, content_type)


def _decoded(body: bytes) -> Object:
    """An object that the API server sent. Raises _Unanswered."""
    try:
        return _decode(body)
    except msgspec.MsgspecError as error:
        raise _Unanswered(Answer(0, "Undecodable", str(error))) from error


def _refused(answer: Answer) -> Progress:
    """What an answer other than a success means: a conflict and a missing answer are retried."""
    text = answer.message or answer.reason or f"HTTP status {answer.status}"
    if answer.status in {0, 401, 408, 409, 429} or answer.status >= 500:
        return Progress("again", text, retry_after_ms=answer.retry_after_ms)
    return Progress("failed", text)


def _is_done(answer: Answer) -> bool:
    """Whether an undo was carried out, or its object is gone."""
    return 200 <= answer.status < 300 or answer.status == 404


def _leaves_doubt(answer: Answer) -> bool:
    """Whether the write may have been carried out, or may still be."""
    return answer.status in {0, 408} or answer.status >= 500
