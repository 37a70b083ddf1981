"""Registers this process as the server of its API group, and removes the registration when it
stops.

While an APIService exists that the API server does not reach, Kubernetes cannot delete namespaces.
So outside a cluster (`tutti up`), where the API server may not reach this machine, the registration
is removed again when it is not available after `AVAILABLE_S`. In a cluster the Service's endpoints
decide. A process outside a cluster changes only objects that such a process has written.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from services.api.core.registration_objects import (
    Members,
    ServerAddress,
    api_service,
    external_service,
    is_of_tutti_up,
    read_members,
)
from shared.contracts.visibility_resources import API_SERVICE
from shared.kube.client import KubeClient
from shared.kube.errors import Conflict, KubeError, NotFound
from shared.kube.objects import Condition, KubeObject, ObjectMeta
from shared.kube.resources import API_SERVICES, CLUSTER_ROLES, SERVICES
from shared.pacing import Backoff

log = logging.getLogger(__name__)

#: Time for the API server to reach this process.
AVAILABLE_S: Final = 15.0
_POLL_S: Final = 0.2
#: Between two looks whether the registration is still ours and current.
CHECK_S: Final = 10.0
#: Pauses after a failure; each attempt outside a cluster may keep namespaces for `AVAILABLE_S`.
_RETRY_S: Final = 5.0
_RETRY_S_MAX: Final = 600.0
#: Attempts outside a cluster if the API server has never reached this process: it may run in a
#: container, from which 127.0.0.1 does not lead here.
_UNREACHED_MAX: Final = 3
_CONFLICTS_MAX: Final = 5


class _ApiServiceStatus(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class _ApiService(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: _ApiServiceStatus = _ApiServiceStatus()

    @property
    def available(self) -> Condition | None:
        return next(
            (condition for condition in self.status.conditions if condition.type == "Available"),
            None,
        )


class _Service(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: dict[str, Any] = {}


class Registrar:
    """Registers one replica and keeps it registered (`run`), and unregisters it (`leave`)."""

    def __init__(
        self,
        client: KubeClient,
        identity: str,
        address: ServerAddress,
        owner: str,
        ca: Callable[[], str],
        on_state: Callable[[str], None],
    ) -> None:
        """Nothing is sent before `run`.

        Args:
            client: Client of the API server.
            identity: This replica's identity, the same after a restart.
            address: Where the API server reaches this replica.
            owner: The ClusterRole that the APIService belongs to; "": none.
            ca: Returns the current CA of our certificate.
            on_state: Called after each attempt with the reason why this replica is not registered;
                with "" when it is.
        """
        self._client = client
        self._identity = identity
        self._address = address
        self._owner = owner
        self._ca = ca
        self._on_state = on_state
        self._writing = asyncio.Lock()
        self._left = False
        #: Attempts that the API server did not answer; None: it has reached this process once.
        self._unreached: int | None = 0
        #: UID of the APIService that this process has written; "": none.
        self._uid = ""
        #: Set once the first attempt to write the APIService has ended. Only then may a Service
        #: lead clients here: they trust the CAs in the APIService.
        self.attempted = asyncio.Event()

    async def run(self) -> None:
        """Register, and register again whenever our entry is gone, until cancelled. Errors are
        reported by `on_state` and followed by another attempt; outside a cluster not without end,
        because each keeps namespaces from being deleted while it waits for the API server.
        """
        backoff = Backoff(base_s=_RETRY_S, max_s=_RETRY_S_MAX)
        while True:
            why = await self._attempt()
            if self._left:
                return
            if self._address.external and self._unreached == _UNREACHED_MAX:
                self._on_state(f"{why}; it is not tried again")
                return
            self._on_state(why)
            if not why:
                backoff.reset()
            await asyncio.sleep(backoff.next_s() if why else CHECK_S)

    async def leave(self) -> None:
        """Remove this replica from the APIService, and both objects when no other replica is in it.
        Outside a cluster, an APIService that another process has written stays. Safe to call at
        any time, also twice; `run` writes nothing afterwards.

        Raises:
            KubeError: The entry stays; the next start takes it over.
        """
        self._left = True
        async with self._writing:
            await self._leave()

    async def _attempt(self) -> str:
        """Try once. Returns why this replica is not registered; "" when it is."""
        try:
            async with self._writing:
                if self._left:
                    return ""
                why = await self._register()
            self.attempted.set()
            return why or await self._settle()
        except KubeError as error:
            return str(error)
        finally:
            self.attempted.set()

    async def _register(self) -> str:
        owner_uid = ""
        if self._owner:
            owner_uid = (
                await self._client.get(CLUSTER_ROLES, self._owner, KubeObject)
            ).metadata.uid
        for _ in range(_CONFLICTS_MAX):
            stored = await self._stored()
            if stored is not None and self._is_of_another(stored):
                service = stored.spec.get("service") or {}
                where = f"{service.get('namespace')}/{service.get('name')}"
                return f"{API_SERVICE} belongs to Service {where}: standing by"
            refusal = await self._write_service()
            if refusal:
                return refusal
            members = self._members(stored)
            members[self._identity] = self._ca()
            wanted = api_service(self._address, members, self._owner, owner_uid)
            with contextlib.suppress(Conflict):
                await self._write(stored, wanted)
                return ""
        return "other replicas keep writing the APIService"

    def _is_of_another(self, stored: _ApiService) -> bool:
        """Whether the APIService is another installation's: outside a cluster, any that was not
        written outside one; otherwise one that is available.
        """
        if self._address.external and not is_of_tutti_up(stored.metadata.labels):
            return True
        others = set(read_members(stored.metadata.annotations)) - {self._identity}
        if not others or (not self._address.external and self._is_at_our_address(stored)):
            return False
        condition = stored.available
        return condition is not None and condition.status == "True"

    def _is_at_our_address(self, stored: _ApiService) -> bool:
        service = stored.spec.get("service") or {}
        ours = self._address.namespace, self._address.service
        return (service.get("namespace"), service.get("name")) == ours

    def _has_written(self, stored: _ApiService) -> bool:
        """Whether this process has written the APIService: the next one outside the cluster has the
        same identity, and replaces it, or its port, while this process still stops.
        """
        port = (stored.spec.get("service") or {}).get("port")
        return stored.metadata.uid == self._uid and port == self._address.port

    def _members(self, stored: _ApiService | None) -> Members:
        """The replicas behind the same Service; outside a cluster there is one."""
        if stored is None or self._address.external or not self._is_at_our_address(stored):
            return {}
        return read_members(stored.metadata.annotations)

    async def _write(self, stored: _ApiService | None, wanted: dict[str, Any]) -> None:
        """Write the APIService if it is not current. Raises Conflict."""
        if stored is None:
            created = await self._client.create(API_SERVICES, wanted)
            self._uid = msgspec.json.decode(created.body, type=KubeObject).metadata.uid
            log.info("registered %s", API_SERVICE)
            return
        known, metadata = stored.metadata, wanted["metadata"]
        self._uid = known.uid
        if (
            stored.spec.items() >= wanted["spec"].items()
            and known.labels.items() >= metadata["labels"].items()
            and known.annotations.items() >= metadata["annotations"].items()
        ):
            return
        metadata["resourceVersion"] = known.resource_version
        await self._client.replace(API_SERVICES, API_SERVICE, wanted)
        log.info("registered %s again", API_SERVICE)

    async def _write_service(self) -> str:
        """Have the Service that leads here. Returns why it cannot be written; "" when it exists."""
        address = self._address
        if not address.external:
            return ""
        manifest = external_service(address)
        stored = await self._stored_service()
        if stored is None:
            await self._client.create(SERVICES, manifest, namespace=address.namespace)
        elif not is_of_tutti_up(stored.metadata.labels):
            return f"Service {address.namespace}/{address.service} exists and is not of tutti up"
        elif not stored.spec.items() >= manifest["spec"].items():
            await self._client.patch(
                SERVICES, address.service, {"spec": manifest["spec"]}, namespace=address.namespace
            )
        return ""

    async def _settle(self) -> str:
        """Wait until the API server reaches this process; why it does not, "" when it does."""
        condition: Condition | None = None
        message = ""
        try:
            async with asyncio.timeout(AVAILABLE_S):
                while True:
                    stored = await self._stored()
                    condition = stored.available if stored is not None else None
                    if condition is not None and condition.status == "True":
                        self._unreached = None
                        return ""
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            message = condition.message if condition is not None else "no condition is set"
        if self._unreached is not None:
            self._unreached += 1
        if self._address.external:
            async with self._writing:
                await self._leave()
        return f"the API server does not reach this process: {message}"

    async def _leave(self) -> None:
        for _ in range(_CONFLICTS_MAX):
            stored = await self._stored()
            members = {} if stored is None else read_members(stored.metadata.annotations)
            if stored is None or members.pop(self._identity, None) is None:
                break
            if self._address.external and not self._has_written(stored):
                return
            with contextlib.suppress(Conflict, NotFound):
                if members:
                    owner = next(iter(stored.metadata.owner_references), None)
                    wanted = api_service(
                        self._address,
                        members,
                        self._owner if owner is not None else "",
                        owner.uid if owner is not None else "",
                    )
                    await self._write(stored, wanted)
                    return
                await self._client.delete(API_SERVICES, API_SERVICE, uid=stored.metadata.uid)
                break
        else:
            return
        if self._address.external:
            await self._delete_service()

    async def _delete_service(self) -> None:
        address, stored = self._address, await self._stored_service()
        if stored is None or not is_of_tutti_up(stored.metadata.labels):
            return
        with contextlib.suppress(Conflict, NotFound):
            await self._client.delete(
                SERVICES, address.service, namespace=address.namespace, uid=stored.metadata.uid
            )

    async def _stored(self) -> _ApiService | None:
        try:
            return await self._client.get(API_SERVICES, API_SERVICE, _ApiService)
        except NotFound:
            return None

    async def _stored_service(self) -> _Service | None:
        address = self._address
        try:
            return await self._client.get(
                SERVICES, address.service, _Service, namespace=address.namespace
            )
        except NotFound:
            return None
