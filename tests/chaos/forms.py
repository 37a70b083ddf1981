"""What users write down to get a gang: a PodGroup of any API and its pods, or a Volcano Job."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from shared.contracts import annotations
from tests.chaos.audit import REPAIR_DEADLINE_S
from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest

Form: TypeAlias = Literal["volcano", "sigs", "job", "kubernetes"]
"""job: our own controller makes the group and the pods, and makes them again. kubernetes: only
where the API server serves PodGroups of scheduling.k8s.io.
"""

FORMS: Final[tuple[Form, ...]] = ("volcano", "sigs", "job")
KUBE_SCHEDULER: Final = "default-scheduler"
TUTTI: Final = "tutti"
NAMESPACE: Final = "chaos"
#: PodGroups of Kubernetes itself, in the version that the pinned minor serves.
KUBERNETES_GROUPS: Final = "scheduling.k8s.io/v1alpha2"
#: Labels of every member: its gang's name as the user has it, and its number, except in a Job.
GANG: Final = "chaos.test/gang"
MEMBER: Final = "chaos.test/member"
VOLCANO_GROUPS: Final = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups"
_PATHS: Final[dict[Form, str]] = {
    "volcano": VOLCANO_GROUPS,
    "sigs": f"/apis/scheduling.sigs.dev/v1alpha2/namespaces/{NAMESPACE}/podgroups",
    "job": f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs",
    "kubernetes": f"/apis/{KUBERNETES_GROUPS}/namespaces/{NAMESPACE}/podgroups",
}
_API_VERSIONS: Final[dict[Form, str]] = {
    "volcano": "scheduling.volcano.sh/v1beta1",
    "sigs": "scheduling.sigs.dev/v1alpha2",
    "job": "batch.volcano.sh/v1alpha1",
    "kubernetes": KUBERNETES_GROUPS,
}
_REQUESTS: Final = {"cpu": "1", "memory": "1Gi"}
#: Nodes die for as long as the run lasts; no Job is to give up for that.
_RETRIES_MAX: Final = 1000


def path_of(form: Form) -> str:
    """Where objects of this form are created."""
    return _PATHS[form]


def manifest_of(
    form: Form, name: str, *, size: int, minimum: int, settings: Mapping[str, str] | None = None
) -> Object:
    """The object that declares the gang; `settings` are annotations beside the repair deadline."""
    noted = {annotations.REPAIR_DEADLINE_SECONDS: str(int(REPAIR_DEADLINE_S)), **(settings or {})}
    return {
        "apiVersion": _API_VERSIONS[form],
        "kind": "Job" if form == "job" else "PodGroup",
        "metadata": {"name": name, "annotations": noted},
        "spec": _spec_of(form, name, size, minimum),
    }


def member_of(
    gang: str,
    pod: str,
    member: int,
    *,
    owned: bool,
    form: Form = "volcano",
    scheduler: str = TUTTI,
) -> Object:
    """A member that a user, or an operator, makes."""
    controller = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "name": gang,
        "uid": owner_uid(gang),
        "controller": True,
    }
    native = form == "kubernetes"
    return pod_manifest(
        pod,
        requests=_REQUESTS,
        scheduler_name=scheduler,
        labels={GANG: gang, MEMBER: str(member)},
        annotations={} if native else {annotations.GROUP_NAME: gang},
        owner=controller if owned else None,
        spec={"schedulingGroup": {"podGroupName": gang}} if native else None,
    )


def owner_uid(gang: str) -> str:
    """UID of the controller that a gang's owned members name."""
    return f"job-{gang}"


def number_of(pod: Object) -> int:
    """Which member of its gang a pod is."""
    metadata = pod["metadata"]
    number = metadata["labels"].get(MEMBER)
    return int(number if number is not None else metadata["annotations"][annotations.TASK_INDEX])


def _spec_of(form: Form, name: str, size: int, minimum: int) -> Object:
    match form:
        case "volcano" | "sigs":
            return {"minMember": minimum}
        case "kubernetes":
            return {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        case "job":
            return _job_spec(name, size, minimum)


def _job_spec(name: str, size: int, minimum: int) -> Object:
    template = pod_manifest(name, requests=_REQUESTS, labels={GANG: name})
    return {
        "schedulerName": "tutti",
        "queue": "default",
        "minAvailable": minimum,
        "maxRetry": _RETRIES_MAX,
        "policies": [
            {"event": "PodEvicted", "action": "RestartJob"},
            {"event": "PodFailed", "action": "RestartJob"},
        ],
        "tasks": [
            {
                "name": "worker",
                "replicas": size,
                "template": {
                    "metadata": {"labels": template["metadata"]["labels"]},
                    "spec": template["spec"],
                },
            }
        ],
    }
