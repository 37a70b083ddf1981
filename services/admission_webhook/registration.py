"""Registers the webhook with the API server, and removes the registration when the process stops.

All replicas share one pair of configurations (`core.configurations`). Behind a Service each replica
is a member. By URL only one can be; the other replicas stand by until it has left. The entry of a
killed replica is taken over: by the same identity, or when no process answers at its address.
"""

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Final

from services.admission_webhook.config import WebhookSettings
from services.admission_webhook.core.configurations import (
    DIGEST,
    LABELS,
    Address,
    Member,
    Members,
    Phase,
    closed_configuration,
    configuration,
    read_members,
)
from services.admission_webhook.reachability import (
    is_alive,
    is_loopback,
    is_reached,
    remove_left_behind,
)
from shared.admission.resource_groups import ResourceGroups
from shared.dialects.protocol import JsonObject
from shared.kube.client import KubeClient
from shared.kube.decoding import Bookmark
from shared.kube.errors import Conflict, Invalid, KubeError, NotFound
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch
from shared.kube.objects import KubeObject, ObjectMeta
from shared.kube.resources import CLUSTER_ROLES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from shared.pacing import Backoff

log = logging.getLogger(__name__)

#: Validation first: between the two writes, defaults without validation would be worse.
_RESOURCES: Final[tuple[tuple[Phase, Resource], ...]] = (
    ("validate", VALIDATING_WEBHOOKS),
    ("mutate", MUTATING_WEBHOOKS),
)
#: Immediate retries when another replica writes at the same moment.
_CONFLICTS_MAX: Final = 5
#: The longest pause between attempts while not registered.
RETRY_S_MAX: Final = 30.0


class Registrar:
    """Registers one replica and keeps it registered (`run`), and unregisters it (`leave`)."""

    def __init__(
        self,
        client: KubeClient,
        settings: WebhookSettings,
        identity: str,
        address: Address,
        ca: Callable[[], str],
        *,
        groups: Callable[[], ResourceGroups] = tuple,
        on_state: Callable[[str], None],
    ) -> None:
        """Nothing is sent before `run`.

        Args:
            client: Client of the API server.
            settings: Names of the configurations, their owner, the schedulers and the namespace of
                probes. With an owner, garbage collection removes the configurations of an
                uninstalled release, whose webhook has no right to do so any more.
            identity: This replica's identity, the same after a restart.
            address: The address at which the API server reaches this replica.
            ca: Returns the current CA of our certificate.
            groups: Returns the current resource groups.
            on_state: Called after each attempt with the reason why this replica is not registered;
                with "" when it is.
        """
        self._client = client
        self._settings = settings
        self._identity = identity
        self._address = address
        self._ca = ca
        self._groups = groups
        self._name = settings.configuration_name
        #: Owner reference to the owning ClusterRole, as last read.
        self._owner_reference: JsonObject | None = None
        self._on_state = on_state
        self._reached_with_ca = ""
        self._with_conditions = True
        self._attempt_due = asyncio.Event()
        self._writing = asyncio.Lock()
        self._left = False

    def wake(self) -> None:
        """Attempt to register at once: our CA or the resource groups have changed."""
        self._attempt_due.set()

    async def run(self) -> None:
        """Register, and register again whenever our entry is gone, until cancelled. Errors are
        reported by `on_state` and followed by another attempt.
        """
        backoff = Backoff(base_s=1.0, max_s=RETRY_S_MAX)
        with contextlib.suppress(KubeError):
            await remove_left_behind(self._client, time.time_ns() // 1_000_000)
        why, pause_s = await self._attempt(), backoff.next_s()
        async with asyncio.TaskGroup() as tasks:
            for _, resource in _RESOURCES:
                tasks.create_task(self._watch(resource), name=f"watch-{resource.plural}")
            while True:
                await self._pause(pause_s if why else None)
                why = await self._attempt()
                pause_s = backoff.next_s()
                if not why:
                    backoff.reset()

    async def leave(self) -> None:
        """Remove this replica from the configurations, and the configurations when no other replica
        is in them. Safe to call at any time, also twice; `run` writes nothing afterwards.

        Raises:
            KubeError: The entry stays; the next start takes it over.
        """
        self._left = True
        async with self._writing:
            await self._leave_all()

    async def _attempt(self) -> str:
        """Try once. Returns why this replica is not registered; "" when it is."""
        self._attempt_due.clear()
        try:
            async with self._writing:
                why = "" if self._left else await self._register()
        except KubeError as error:
            why = str(error)
        if not self._left:
            self._on_state(why)
        return why

    async def _register(self) -> str:
        await self._find_owner()
        for _ in range(_CONFLICTS_MAX):
            stored: dict[Phase, KubeObject | None] = {
                phase: await self._stored(resource) for phase, resource in _RESOURCES
            }
            others = self._others(stored)
            holder = await self._holder(others)
            if holder:
                return f"{holder} is registered: standing by"
            if not await self._is_reached(self._siblings(others)):
                await self._leave_all()
                return f"the API server does not reach {self._where()}"
            try:
                for phase, resource in _RESOURCES:
                    await self._write(phase, resource, stored[phase])
            except Conflict:
                continue
            except Invalid as error:
                if not self._with_conditions or not _is_about_conditions(error):
                    raise
                log.info("registering without match conditions: %s", error.message)
                self._with_conditions = False
                continue
            return ""
        return "other replicas keep writing the configurations"

    async def _find_owner(self) -> None:
        """Read the owner's UID, if there is an owner: at each attempt, since a ClusterRole may have
        been created again under its name. Raises KubeError.
        """
        owner = self._settings.owner_cluster_role
        if not owner:
            return
        role = await self._client.get(CLUSTER_ROLES, owner, KubeObject)
        self._owner_reference = {
            "apiVersion": CLUSTER_ROLES.api_version,
            "kind": CLUSTER_ROLES.kind,
            "name": owner,
            "uid": role.metadata.uid,
        }

    async def _stored(self, resource: Resource) -> KubeObject | None:
        try:
            return await self._client.get(resource, self._name, KubeObject)
        except NotFound:
            return None

    def _others(self, stored: dict[Phase, KubeObject | None]) -> Members:
        members: Members = {}
        for known in stored.values():
            if known is not None:
                members |= read_members(known.metadata.annotations)
        members.pop(self._identity, None)
        return members

    async def _holder(self, others: Members) -> str:
        """The live replica that keeps this one from being registered; "" for none.

        A Service has precedence over a URL: it is an installation, a URL is a user's `tutti up`.
        """
        if not self._address.url:
            return ""
        for name, member in others.items():
            # A process on another machine may be alive although it cannot be reached from here.
            on_this_machine = is_loopback(member.address.url) and is_loopback(self._address.url)
            if not on_this_machine or await is_alive(member):
                return name
        return ""

    async def _is_reached(self, siblings: Members) -> bool:
        """Whether the API server reaches this replica; tested once for each CA."""
        ca = self._ca()
        if self._reached_with_ca == ca:
            return True
        reached = await is_reached(
            self._client,
            self._address,
            [ca, *(sibling.ca for sibling in siblings.values())],
            probe=hashlib.sha256(self._identity.encode()).hexdigest()[:10],
            namespace=self._settings.probe_namespace,
        )
        self._reached_with_ca = ca if reached else ""
        return reached

    async def _write(self, phase: Phase, resource: Resource, stored: KubeObject | None) -> None:
        """Write the configuration if it is not current. Raises Conflict when another replica wrote
        it.
        """
        stored_members = read_members(stored.metadata.annotations) if stored is not None else {}
        # Only members of this object: a replica that is leaving may still be in the other object.
        members = self._siblings(stored_members)
        members[self._identity] = Member(address=self._address, ca=self._ca())
        wanted = self._configuration(phase, members, self._address)
        if stored is None:
            await self._client.create(resource, wanted)
            log.info("registered %s, which calls %s", resource.kind, self._where())
            return
        if stored.metadata.annotations.get(DIGEST) == wanted["metadata"]["annotations"][DIGEST]:
            return
        gone = sorted(stored_members.keys() - members.keys())
        if gone:
            log.info("taking over from %s: it does not answer", ", ".join(gone))
        wanted["metadata"]["resourceVersion"] = stored.metadata.resource_version
        await self._client.replace(resource, self._name, wanted)
        log.info("registered %s, which calls %s", resource.kind, self._where())

    def _configuration(self, phase: Phase, members: Members, address: Address) -> JsonObject:
        return configuration(
            phase,
            members,
            address,
            self._settings.scheduler_name,
            with_conditions=self._with_conditions,
            groups=self._groups(),
            name=self._name,
            owner=self._owner_reference,
            opt_in=self._settings.opt_in,
        )

    def _siblings(self, others: Members) -> Members:
        """The replicas behind the same Service. Behind a URL there is one replica."""
        if self._address.url:
            return {}
        return {name: member for name, member in others.items() if member.address == self._address}

    async def _leave_all(self) -> None:
        for phase, resource in _RESOURCES:
            await self._leave(phase, resource)

    async def _leave(self, phase: Phase, resource: Resource) -> None:
        for _ in range(_CONFLICTS_MAX):
            stored = await self._stored(resource)
            if stored is None:
                return
            members = read_members(stored.metadata.annotations)
            left = members.pop(self._identity, None)
            if left is None:
                return
            with contextlib.suppress(Conflict):
                with contextlib.suppress(NotFound):
                    await self._without_us(phase, resource, stored.metadata, members, left)
                return

    async def _without_us(
        self,
        phase: Phase,
        resource: Resource,
        metadata: ObjectMeta,
        members: Members,
        left: Member,
    ) -> None:
        owner = self._owner_reference
        stays_closed = owner is not None and self._settings.opt_in and self._with_conditions
        if members:
            wanted = self._configuration(phase, members, next(iter(members.values())).address)
        elif phase == "mutate" and stays_closed:
            wanted = closed_configuration(
                left, self._settings.scheduler_name, name=self._name, owner=owner
            )
        else:
            await self._client.delete(resource, self._name, uid=metadata.uid)
            log.info("registration removed: %s", resource.kind)
            return
        wanted["metadata"]["resourceVersion"] = metadata.resource_version
        await self._client.replace(resource, self._name, wanted)

    async def _pause(self, timeout_s: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._attempt_due.wait()

    async def _watch(self, resource: Resource) -> None:
        labels = ",".join(f"{key}={value}" for key, value in LABELS.items())
        await ListWatch(self._client, resource, KubeObject, label_selector=labels).run(self._notice)

    async def _notice(self, batch: Listed[KubeObject] | Changes[KubeObject] | Absent) -> None:
        """Attempt to register when our configurations have changed, or may have during a gap."""
        if isinstance(batch, Listed) or (
            isinstance(batch, Changes)
            and any(
                not isinstance(change, Bookmark) and change.object.metadata.name == self._name
                for change in batch.changes
            )
        ):
            self._attempt_due.set()

    def _where(self) -> str:
        address = self._address
        service = f"Service {address.service_namespace}/{address.service_name}"
        return address.url or service


def _is_about_conditions(error: Invalid) -> bool:
    """Whether the API server refuses only the match conditions: it has no CEL, and sending more
    objects than ours does no harm.
    """
    fields = [cause.field for cause in error.details.causes]
    return bool(fields) and all("matchConditions" in field for field in fields)
