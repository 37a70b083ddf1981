"""Keeps the webhook registered with the API server while it lives, and never longer.

One pair of configurations stands for all replicas (`core.configurations`). Behind a Service every
replica is a member; by URL only one can be, and the other replicas stand by until it has gone. What
a killed predecessor left is taken over: by its identity, or because no process answers at its
address any more.
"""

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from services.admission_webhook.core.configurations import (
    DIGEST,
    LABELS,
    NAME,
    Address,
    Member,
    Members,
    Phase,
    configuration,
    read_members,
)
from services.admission_webhook.core.resource_groups import ResourceGroups
from services.admission_webhook.reachability_probe import is_reached, remove_left_behind
from services.admission_webhook.replicas import answers, is_loopback
from shared.dialects.protocol import JsonObject
from shared.kube.client import KubeClient
from shared.kube.decoding import Bookmark
from shared.kube.errors import Conflict, Invalid, KubeError, NotFound
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch
from shared.kube.objects import KubeStruct, ObjectMeta
from shared.kube.resources import CLUSTER_ROLES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from shared.pacing import Backoff

log = logging.getLogger(__name__)

#: Validation first: while only one of the two is there, defaults without checks would be worse.
_RESOURCES: Final[tuple[tuple[Phase, Resource], ...]] = (
    ("validate", VALIDATING_WEBHOOKS),
    ("mutate", MUTATING_WEBHOOKS),
)
#: Another replica wrote at the same moment: so often it is tried again at once.
_CONFLICTS_MAX: Final = 5
#: While not registered: a neighbour may have been killed, a network repaired.
RECHECK_S: Final = 30.0


class StoredConfiguration(KubeStruct, frozen=True, kw_only=True):
    """What is looked at of a stored configuration."""

    metadata: ObjectMeta = ObjectMeta()


class Identity(NamedTuple):
    """A replica's identity, the same after a restart."""

    name: str

    @property
    def digest(self) -> str:
        """Short, and good as a part of an object's name."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:10]


class Registrar:
    """Registers one replica, keeps it registered (`run`), and takes it away again (`leave`)."""

    def __init__(
        self,
        client: KubeClient,
        identity: Identity,
        address: Address,
        ca: Callable[[], str],
        *,
        scheduler_names: tuple[str, ...],
        probe_namespace: str,
        groups: Callable[[], ResourceGroups] = tuple,
        name: str = NAME,
        owner: str = "",
        on_state: Callable[[str], None],
    ) -> None:
        """Prepare.

        Args:
            client: Of the API server.
            identity: Ours.
            address: Where the API server finds us.
            ca: Gives the CA of our certificate as it is now.
            scheduler_names: Names of schedulers that we are.
            probe_namespace: Where the creation of a ConfigMap is tried.
            groups: Gives the resource groups as they are now.
            name: Of both configurations.
            owner: ClusterRole that they belong to: garbage collection takes them away with it, when
                an uninstalled release has no right to any more. "" for none.
            on_state: Called after each attempt with why we are not registered; "" when we are.
        """
        self._client = client
        self._identity = identity
        self._address = address
        self._ca = ca
        self._scheduler_names = scheduler_names
        self._probe_namespace = probe_namespace
        self._groups = groups
        self._name = name
        self._owner = owner
        #: Reference to it, as it was looked up last.
        self._owned: JsonObject | None = None
        self._on_state = on_state
        self._proved = ""
        self._with_conditions = True
        self._woken = asyncio.Event()
        self._writing = asyncio.Lock()
        self._left = False

    def wake(self) -> None:
        """Look again at once: our CA or the resource groups have changed."""
        self._woken.set()

    async def run(self) -> None:
        """Register, and again whenever our entry was removed, until cancelled. Errors are reported
        by `on_state` and tried again.
        """
        backoff = Backoff(base_s=1.0, max_s=RECHECK_S)
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
        """Take this replica out of the configurations, and remove them when no other is in them.

        Safe to call at any time, also twice; `run` does nothing afterwards.

        Raises:
            KubeError: It could not be done; the next start will.
        """
        self._left = True
        async with self._writing:
            for phase, resource in _RESOURCES:
                await self._leave(phase, resource)

    async def _attempt(self) -> str:
        """Try once; returns why we are not registered, "" when we are."""
        self._woken.clear()
        try:
            async with self._writing:
                why = "" if self._left else await self._settle()
        except KubeError as error:
            why = str(error)
        if not self._left:
            self._on_state(why)
        return why

    async def _settle(self) -> str:
        await self._find_owner()
        for _ in range(_CONFLICTS_MAX):
            stored: dict[Phase, StoredConfiguration | None] = {
                phase: await self._stored(resource) for phase, resource in _RESOURCES
            }
            others = self._others(stored)
            holder = await self._holder(others)
            if holder:
                return f"{holder} is registered: standing by"
            if not await self._is_proved(self._siblings(others)):
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
        return "others keep writing the configurations"

    async def _find_owner(self) -> None:
        """Look up which release the configurations belong to, if any: each time, since it may have
        been made again under its name. Raises KubeError.
        """
        if not self._owner:
            return
        found = await self._client.get(CLUSTER_ROLES, self._owner, StoredConfiguration)
        self._owned = {
            "apiVersion": CLUSTER_ROLES.api_version,
            "kind": CLUSTER_ROLES.kind,
            "name": self._owner,
            "uid": found.metadata.uid,
        }

    async def _stored(self, resource: Resource) -> StoredConfiguration | None:
        try:
            return await self._client.get(resource, self._name, StoredConfiguration)
        except NotFound:
            return None

    def _others(self, stored: dict[Phase, StoredConfiguration | None]) -> Members:
        found: Members = {}
        for one in stored.values():
            if one is not None:
                found |= read_members(one.metadata.annotations)
        found.pop(self._identity.name, None)
        return found

    async def _holder(self, others: Members) -> str:
        """The other one that is registered and lives where we cannot be with it; "" for none.

        A Service goes before a URL: it is an installation, and a URL is a user's `tutti up`.
        """
        if not self._address.url:
            return ""
        for name, member in others.items():
            judged = is_loopback(member.address.url) and is_loopback(self._address.url)
            if not judged or await answers(member):
                return name
        return ""

    async def _is_proved(self, siblings: Members) -> bool:
        """Whether the API server reaches us; tried once for each CA."""
        ca = self._ca()
        if self._proved == ca:
            return True
        reached = await is_reached(
            self._client,
            self._address,
            [ca, *(sibling.ca for sibling in siblings.values())],
            probe=self._identity.digest,
            namespace=self._probe_namespace,
        )
        self._proved = ca if reached else ""
        return reached

    async def _write(
        self, phase: Phase, resource: Resource, stored: StoredConfiguration | None
    ) -> None:
        """Make the stored configuration what it should be. Raises Conflict when it changed."""
        noted = read_members(stored.metadata.annotations) if stored is not None else {}
        # Only those of this very object: a replica that left it may still be in the other one.
        members = self._siblings(noted)
        members[self._identity.name] = Member(address=self._address, ca=self._ca())
        wanted = self._configuration(phase, members, self._address)
        if stored is None:
            await self._client.create(resource, wanted)
            log.info("registered: %s asks %s", resource.kind, self._where())
            return
        notes = stored.metadata.annotations
        if notes.get(DIGEST) == wanted["metadata"]["annotations"][DIGEST]:
            return
        gone = sorted(noted.keys() - members.keys())
        if gone:
            log.info("taking over from %s: it does not answer", ", ".join(gone))
        wanted["metadata"]["resourceVersion"] = stored.metadata.resource_version
        await self._client.replace(resource, self._name, wanted)
        log.info("registered: %s asks %s", resource.kind, self._where())

    def _configuration(self, phase: Phase, members: Members, address: Address) -> JsonObject:
        return configuration(
            phase,
            members,
            address,
            self._scheduler_names,
            with_conditions=self._with_conditions,
            groups=self._groups(),
            name=self._name,
            owner=self._owned,
        )

    def _siblings(self, others: Members) -> Members:
        """Those behind the same Service. A URL has one replica behind it."""
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
            if members.pop(self._identity.name, None) is None:
                return
            try:
                await self._without_us(phase, resource, stored.metadata, members)
            except NotFound:
                return
            except Conflict:
                continue
            return

    async def _without_us(
        self, phase: Phase, resource: Resource, metadata: ObjectMeta, members: Members
    ) -> None:
        if not members:
            await self._client.delete(resource, self._name, uid=metadata.uid)
            log.info("registration removed: %s", resource.kind)
            return
        wanted = self._configuration(phase, members, next(iter(members.values())).address)
        wanted["metadata"]["resourceVersion"] = metadata.resource_version
        await self._client.replace(resource, self._name, wanted)

    async def _pause(self, timeout_s: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()

    async def _watch(self, resource: Resource) -> None:
        labels = ",".join(f"{key}={value}" for key, value in LABELS.items())
        await ListWatch(self._client, resource, StoredConfiguration, label_selector=labels).run(
            self._notice
        )

    async def _notice(
        self, batch: Listed[StoredConfiguration] | Changes[StoredConfiguration] | Absent
    ) -> None:
        """Look again when our configurations changed, or may have while there was no watch."""
        if isinstance(batch, Listed) or (
            isinstance(batch, Changes)
            and any(_name_of(change) == self._name for change in batch.changes)
        ):
            self._woken.set()

    def _where(self) -> str:
        address = self._address
        service = f"Service {address.service_namespace}/{address.service_name}"
        return address.url or service


def _is_about_conditions(error: Invalid) -> bool:
    """Whether the API server refuses nothing but match conditions: it knows no CEL, and would send
    us more than is ours without harm.
    """
    fields = [cause.field for cause in error.details.causes]
    return bool(fields) and all("matchConditions" in field for field in fields)


def _name_of(change: Any) -> str:
    return "" if isinstance(change, Bookmark) else str(change.object.metadata.name)
