"""Installs Tutti's CRDs.

A CRD of another product is not changed, unless `--take-over` is given: it may have more fields than
ours, and ours would prune them from existing objects. A CRD of a newer Tutti is never changed, for
the same reason.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from shared.kube.client import KubeClient
from shared.kube.errors import Conflict
from shared.kube.objects import Condition, KubeObject, KubeStruct
from shared.kube.resources import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from tutti.api.failures import Refusal
from tutti.api.fetches import at_once, find
from tutti.manifests.crds import REVISION_ANNOTATION, default_names, manifests

#: Label of every CRD that Tutti creates; a CRD without it belongs to another product.
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_OURS: Final = "tutti"
#: A starting or overloaded API server took longer than 15 s.
_ESTABLISHED_TIMEOUT_S: Final = 60.0
#: The API server establishes a CRD within tens of milliseconds, and reports it in its status only.
_LOOK_EVERY_S: Final = 0.05


class CrdStatus(KubeStruct, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class Crd(KubeObject, frozen=True, kw_only=True):
    """apiextensions.k8s.io/v1 CustomResourceDefinition: the fields that are read here."""

    status: CrdStatus = CrdStatus()

    @property
    def established(self) -> bool:
        return any(c.type == "Established" and c.status == "True" for c in self.status.conditions)


async def install(
    client: KubeClient,
    say: Callable[[str], None],
    *,
    take_over: bool = False,
    kube_batch: bool = False,
) -> int:
    """Create our CRDs, update those that we created, and wait until all are served; returns their
    number. `say` receives a line about CRDs that were not changed.

    With `take_over`, CRDs of other products become ours. CRDs of kube-batch's kinds are created
    only on request: kubectl resolves a plural of several groups to the first group in alphabetical
    order, so `kubectl get queue` would list kube-batch's.

    Stored objects stay readable: a schema is checked only on writes.

    Raises:
        ApiError: The API server refuses one, or our right to write it.
        TransportError: It does not answer.
        Refusal: The API server does not serve a CRD in time.
    """
    default = default_names()
    wanted = {each["metadata"]["name"]: each for each in manifests()}
    outcomes = await at_once(
        wanted,
        lambda name: _apply(
            client, wanted[name], take_over=take_over, create=kube_batch or name in default
        ),
    )
    for left, why in (("foreign", "of another product"), ("newer", "of a newer Tutti")):
        names = sorted(name for name, outcome in outcomes.items() if outcome == left)
        if names:
            say(f"CRDs {why} are not changed: {', '.join(names)}")
    served = {name for name, outcome in outcomes.items() if outcome != "absent"}
    old = sorted(served - default)
    if old and not kube_batch:
        say(
            "`kubectl get queues` and `get podgroups` find kube-batch's kinds first; delete their "
            f"CRDs if none of your manifests uses them: {', '.join(old)}"
        )
    return len(served)


_Outcome = Literal["written", "foreign", "newer", "absent"]


async def _apply(
    client: KubeClient, manifest: dict[str, Any], *, take_over: bool, create: bool
) -> _Outcome:
    """Write one CRD unless it belongs to another product, and wait until it is served.

    With `create` False an existing CRD is updated, and a missing one is not created.
    """
    name = manifest["metadata"]["name"]
    outcome: _Outcome = "written"
    manifest["metadata"].setdefault("labels", {})[_MANAGED_BY] = _OURS
    if not create and await find(client, CRDS, name, Crd) is None:
        return "absent"
    try:
        await client.create(CRDS, manifest)
    except Conflict:
        stored = (await client.get(CRDS, name, Crd)).metadata
        if stored.labels.get(_MANAGED_BY) != _OURS and not take_over:
            outcome = "foreign"
        elif _revision(stored.annotations) > _revision(manifest["metadata"]["annotations"]):
            outcome = "newer"
        else:
            # A merge patch replaces lists, such as the versions, as a whole.
            await client.patch(CRDS, name, manifest)
    await _established(client, name)
    return outcome


def _revision(annotations: Mapping[str, str]) -> int:
    """The schema revision; 0 for a CRD without one."""
    text = annotations.get(REVISION_ANNOTATION, "")
    return int(text) if text.isdecimal() else 0


async def _established(client: KubeClient, name: str) -> None:
    try:
        async with asyncio.timeout(_ESTABLISHED_TIMEOUT_S):
            while True:
                crd = await find(client, CRDS, name, Crd)
                # If another client deleted it, the timeout ends this.
                if crd is not None and crd.established:
                    return
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        raise Refusal(f"CRD {name} is not served after {_ESTABLISHED_TIMEOUT_S:.0f} s") from None
