"""What the annotations of a pod of ours must be; the API server knows the rest of a pod."""

import msgspec

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.mutate_pod import ABSENT, group_of
from services.admission_webhook.core.parts import text_at
from services.admission_webhook.core.review import plain_object
from shared.dialects import native
from shared.dialects.protocol import FieldError, JsonObject
from shared.kube.objects import KubeStruct


class _Metadata(KubeStruct, frozen=True, kw_only=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Spec(KubeStruct, frozen=True, kw_only=True):
    scheduler_name: str = ""
    # For pods of resource groups only: the code that needs them reads them (`mutate_pod`).
    tolerations: msgspec.Raw = ABSENT
    node_selector: msgspec.Raw = ABSENT
    affinity: msgspec.Raw = ABSENT
    # Gang declarations, for `gang_marks`.
    scheduling_group: msgspec.Raw = ABSENT
    workload_ref: msgspec.Raw = ABSENT


class _Head(KubeStruct, frozen=True, kw_only=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


_decode_head = msgspec.json.Decoder(_Head).decode


def read_head(raw: msgspec.Raw) -> JsonObject:
    """Of a pod only what is looked at here: a tenth of the time that the whole would take, and pods
    come by the thousand.
    """
    try:
        head = _decode_head(raw)
    except msgspec.ValidationError:
        # Not from an API server, which has checked the types of a pod before it asks us.
        return plain_object(raw)
    return {
        "metadata": {
            "labels": head.metadata.labels or {},
            "annotations": head.metadata.annotations or {},
        },
        "spec": {
            "schedulerName": head.spec.scheduler_name,
            "tolerations": head.spec.tolerations,
            "nodeSelector": head.spec.node_selector,
            "affinity": head.spec.affinity,
            "schedulingGroup": head.spec.scheduling_group,
            "workloadRef": head.spec.workload_ref,
        },
    }


def is_ours(case: Case) -> bool:
    """Whether it names one of our schedulers, or belongs to a resource group. (A pod without any
    scheduler is default-scheduler's by now.)
    """
    named = text_at(case.candidate, "spec", "schedulerName") in case.known.scheduler_names
    return named or group_of(case) is not None


def validate(case: Case) -> list[FieldError]:
    """The group's name, the gang's size, and the disruption budget that Volcano's pods declare."""
    return native.validate("Pod", case.candidate)
