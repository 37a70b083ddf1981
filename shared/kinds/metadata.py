"""Metadata of the objects that controllers write, and references to these objects."""

from shared.kube.objects import Int64, KubeStruct, ObjectMeta, OwnerReference


class Metadata(ObjectMeta, frozen=True, kw_only=True):
    """The metadata of an object that is written whole."""

    generate_name: str = ""
    generation: Int64 = 0
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
    return controller_reference(
        owner.api_version, owner.kind, owner.metadata.name, owner.metadata.uid
    )


def controller_reference(api_version: str, kind: str, name: str, uid: str) -> OwnerReference:
    """A reference to the controller of an object, which is deleted with it."""
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=name,
        uid=uid,
        controller=True,
        block_owner_deletion=True,
    )
