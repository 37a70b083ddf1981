"""Metadata of the objects that controllers write, and references to these objects."""

from shared.kube.objects import KubeStruct, ObjectMeta, OwnerReference


class Metadata(ObjectMeta, frozen=True, kw_only=True):
    """The metadata of an object that is written whole."""

    generate_name: str = ""
    generation: int = 0
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class KindObject(KubeStruct, frozen=True, kw_only=True):
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
