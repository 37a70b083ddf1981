"""Reads storage: volumes, claims, classes, and the limits and capacities that CSI drivers publish.

A volume of an in-tree kind that was migrated to CSI gets its driver's name, as in kube-scheduler;
so does a class that provisions such volumes.
"""

from typing import Final

from shared.dialects import selectors
from shared.dialects.protocol import cluster_identity, identity
from shared.dialects.reference_objects import TEXT_CHARACTERS_MAX, kind, labels, pod_owner_uid
from shared.kube import objects as kube
from shared.kube import reference_objects as looked_up
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import (
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUME_CLAIMS,
    VOLUMES,
)
from shared.model import objects as model
from shared.model import reference_objects

#: The field's predecessor: overrides it, on volumes and on claims.
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
#: In-tree provisioners and the CSI drivers that replace them.
_MIGRATED: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}


def read_volume(volume: looked_up.PersistentVolume) -> reference_objects.Volume:
    metadata, spec = volume.metadata, volume.spec
    claim = spec.claim_ref or looked_up.ClaimReference()
    driver, handle = _source(spec)
    required = spec.node_affinity.required if spec.node_affinity is not None else None
    return reference_objects.Volume(
        **cluster_identity(metadata),
        capacity_bytes=_bytes(spec.capacity.get("storage", 0)),
        access_modes=spec.access_modes,
        storage_class=metadata.annotations.get(_CLASS_ANNOTATION) or spec.storage_class_name,
        mode=spec.volume_mode,
        phase=volume.status.phase,
        labels=labels(metadata),
        claim_namespace=claim.namespace,
        claim_name=claim.name,
        claim_uid=claim.uid,
        node_affinity=selectors.terms(required) if required is not None else None,
        driver=driver[:TEXT_CHARACTERS_MAX],
        handle=handle[:TEXT_CHARACTERS_MAX],
        deleting=metadata.deletion_timestamp is not None,
    )


def read_claim(stored: looked_up.PersistentVolumeClaim) -> reference_objects.Claim:
    metadata, spec = stored.metadata, stored.spec
    return reference_objects.Claim(
        **identity(metadata),
        storage_class=metadata.annotations.get(_CLASS_ANNOTATION, spec.storage_class_name),
        volume_name=spec.volume_name,
        access_modes=spec.access_modes,
        request_bytes=_bytes(spec.resources.requests.get("storage", 0)),
        mode=spec.volume_mode,
        selector=selectors.selector(spec.selector),
        selected_node=metadata.annotations.get(_SELECTED_NODE, "")[:TEXT_CHARACTERS_MAX],
        bind_completed=_BIND_COMPLETED in metadata.annotations,
        phase=stored.status.phase,
        owner_uid=pod_owner_uid(metadata),
        deleting=metadata.deletion_timestamp is not None,
    )


def read_storage_class(storage_class: looked_up.StorageClass) -> reference_objects.StorageClass:
    metadata = storage_class.metadata
    return reference_objects.StorageClass(
        **cluster_identity(metadata),
        provisioner=_MIGRATED.get(storage_class.provisioner, storage_class.provisioner),
        wait_for_first_consumer=storage_class.volume_binding_mode == "WaitForFirstConsumer",
        allowed_topologies=tuple(
            model.SelectorTerm(
                expressions=tuple(
                    model.Requirement(key=requirement.key, operator="In", values=requirement.values)
                    for requirement in term.match_label_expressions
                )
            )
            for term in storage_class.allowed_topologies
        ),
        default=any(metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS),
    )


def read_csi_node(csi_node: looked_up.CsiNode) -> reference_objects.CsiNode:
    return reference_objects.CsiNode(
        **cluster_identity(csi_node.metadata),
        drivers=tuple(
            reference_objects.CsiLimit(
                driver=driver.name,
                volumes_max=-1 if driver.allocatable.count is None else driver.allocatable.count,
                topology_keys=driver.topology_keys,
            )
            for driver in sorted(csi_node.spec.drivers, key=lambda driver: driver.name)
        ),
    )


def read_csi_driver(csi_driver: looked_up.CsiDriver) -> reference_objects.CsiDriver:
    return reference_objects.CsiDriver(
        **cluster_identity(csi_driver.metadata),
        storage_capacity=csi_driver.spec.storage_capacity,
    )


def read_capacity(stored: looked_up.CsiStorageCapacity) -> reference_objects.StorageCapacity:
    """A CSIStorageCapacity; an absent capacity counts as 0."""
    metadata, largest = stored.metadata, stored.maximum_volume_size
    return reference_objects.StorageCapacity(
        **identity(metadata),
        storage_class=stored.storage_class_name,
        node_topology=selectors.selector(stored.node_topology),
        capacity_bytes=_bytes(stored.capacity),
        volume_bytes_max=-1 if largest is None else _bytes(largest),
    )


def read_attachment(attachment: looked_up.VolumeAttachment) -> reference_objects.VolumeAttachment:
    metadata, spec = attachment.metadata, attachment.spec
    return reference_objects.VolumeAttachment(
        **cluster_identity(metadata),
        node=spec.node_name,
        driver=spec.attacher[:TEXT_CHARACTERS_MAX],
        volume=spec.source.persistent_volume_name,
    )


def _source(spec: looked_up.VolumeSpec) -> tuple[str, str]:
    """The CSI driver that mounts the volume and its name for it; ("", "") when none does."""
    if spec.csi is not None:
        return spec.csi.driver, spec.csi.volume_handle
    for provisioner, source in (
        ("kubernetes.io/aws-ebs", spec.aws_elastic_block_store),
        ("kubernetes.io/gce-pd", spec.gce_persistent_disk),
        ("kubernetes.io/azure-disk", spec.azure_disk),
        ("kubernetes.io/cinder", spec.cinder),
        ("kubernetes.io/vsphere-volume", spec.vsphere_volume),
        ("kubernetes.io/portworx-volume", spec.portworx_volume),
    ):
        if source is not None:
            handle = source.volume_id or source.pd_name or source.disk_uri or source.volume_path
            return _MIGRATED[provisioner], handle
    return "", ""


def _bytes(text: kube.Quantity) -> int:
    """Bytes of a quantity that the API server has checked; 0 for one that it would have refused."""
    try:
        return amount("storage", text)
    except QuantityError:
        return 0


KINDS: Final = (
    kind(VOLUMES, "volume", looked_up.PersistentVolume, read_volume),
    kind(VOLUME_CLAIMS, "claim", looked_up.PersistentVolumeClaim, read_claim),
    kind(STORAGE_CLASSES, "storageclass", looked_up.StorageClass, read_storage_class),
    kind(CSI_NODES, "csinode", looked_up.CsiNode, read_csi_node),
    kind(CSI_DRIVERS, "csidriver", looked_up.CsiDriver, read_csi_driver),
    kind(CSI_CAPACITIES, "storagecapacity", looked_up.CsiStorageCapacity, read_capacity),
    kind(VOLUME_ATTACHMENTS, "volumeattachment", looked_up.VolumeAttachment, read_attachment),
)
