"""The fields of `metadata` that controllers need, and references to other objects."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from shared.kinds.fields import KindStruct, rules


class OwnerReference(KindStruct, frozen=True, kw_only=True):
    """A reference by name and UID: `metadata.ownerReferences[]`, a Command's target."""

    api_version: Annotated[str, rules(required=True)] = ""
    kind: Annotated[str, rules(required=True)] = ""
    name: Annotated[str, rules(required=True)] = ""
    uid: Annotated[str, rules(required=True)] = ""
    controller: bool = False
    block_owner_deletion: bool = False

    @property
    def manifest(self) -> dict[str, Any]:
        """The reference as a part of a manifest."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Metadata(KindStruct, frozen=True, kw_only=True):
    """metav1.ObjectMeta without what only the API server looks at."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """`resourceVersion` as an integer; 0 if absent."""
        return int(self.resource_version) if self.resource_version else 0

    @property
    def created_ms(self) -> int:
        """`creationTimestamp` in milliseconds since the epoch; 0 if absent."""
        created = self.creation_timestamp
        return 0 if created is None else int(created.timestamp() * 1000)

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner with `controller: true`, if there is one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class KindObject(KindStruct, frozen=True, kw_only=True):
    """An object of any kind."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()


def controlled_by(owner: KindObject) -> OwnerReference:
    """A controller reference to `owner`: an object that has it is deleted with `owner`."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
