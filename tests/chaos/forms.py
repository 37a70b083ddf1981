"""What users write down to get a gang: a PodGroup of either API and its pods, or a Volcano Job."""

from typing import Final, Literal, TypeAlias, get_args

from shared.contracts import annotations
from tests.chaos.audit import REPAIR_DEADLINE_S
from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest

Form: TypeAlias = Literal["volcano", "sigs", "job"]
"""job: our own controller makes the group and the pods, and makes them again."""

FORMS: Final[tuple[Form, ...]] = get_args(Form)
NAMESPACE: Final = "chaos"
#: Labels of every member: its gang's name as the user has it, and its number, except in a Job.
GANG: Final = "chaos.test/gang"
MEMBER: Final = "chaos.test/member"
VOLCANO_GROUPS: Final = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups"
_PATHS: Final[dict[Form, str]] = {
    "volcano": VOLCANO_GROUPS,
    "sigs": f"/apis/scheduling.sigs.dev/v1alpha2/namespaces/{NAMESPACE}/podgroups",
    "job": f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs",
}
_API_VERSIONS: Final[dict[Form, str]] = {
    "volcano": "scheduling.volcano.sh/v1beta1",
    "sigs": "scheduling.sigs.dev/v1alpha2",
    "job": "batch.volcano.sh/v1alpha1",
}
_REQUESTS: Final = {"cpu": "1", "memory": "1Gi"}
#: Nodes die for as long as the run lasts; no Job is to give up for that.
_RETRIES_MAX: Final = 1000


def path_of(form: Form) -> str:
    """Where objects of this form are created."""
    return _PATHS[form]


def manifest_of(form: Form, name: str, *, size: int, minimum: int) -> Object:
    """The object that declares the gang."""
    noted = {annotations.REPAIR_DEADLINE_SECONDS: str(int(REPAIR_DEADLINE_S))}
    spec = {"minMember": minimum} if form != "job" else _job_spec(name, size, minimum)
    return {
        "apiVersion": _API_VERSIONS[form],
        "kind": "Job" if form == "job" else "PodGroup",
        "metadata": {"name": name, "annotations": noted},
        "spec": spec,
    }


def member_of(gang: str, pod: str, member: int, *, owned: bool) -> Object:
    """A member that a user, or an operator, makes."""
    controller = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "name": gang,
        "uid": f"job-{gang}",
        "controller": True,
    }
    return pod_manifest(
        pod,
        requests=_REQUESTS,
        labels={GANG: gang, MEMBER: str(member)},
        annotations={annotations.GROUP_NAME: gang},
        owner=controller if owned else None,
    )


def number_of(pod: Object) -> int:
    """Which member of its gang a pod is."""
    metadata = pod["metadata"]
    number = metadata["labels"].get(MEMBER)
    return int(number if number is not None else metadata["annotations"][annotations.TASK_INDEX])


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
