"""What users write in our kinds decodes, and comes out as it went in."""

from typing import Any

import msgspec
import pytest

from shared.kinds.catalogue import CATALOGUE
from shared.kinds.job import Job
from shared.kinds.queue import Queue

JOB: dict[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "lab"},
    "spec": {
        "minAvailable": 3,
        "tasks": [
            {
                "name": "ps",
                "replicas": 1,
                "minAvailable": 0,
                "template": {"spec": {"containers": [{"name": "main", "flavour": {"any": 1}}]}},
                "policies": [{"events": ["PodFailed", "*"], "action": "RestartJob"}],
                "partitionPolicy": {"totalPartitions": 1, "partitionSize": 1},
            }
        ],
        "plugins": {"svc": [], "ssh": ["--ssh-port=2222"]},
        "networkTopology": {"highestTierAllowed": 0},
    },
}


def test_a_job_comes_out_of_its_struct_as_its_user_wrote_it() -> None:
    decoded = msgspec.convert(JOB, Job)

    encoded = msgspec.json.decode(msgspec.json.encode(decoded))

    assert encoded == JOB


def test_a_minimum_of_zero_is_not_an_absent_minimum() -> None:
    (task,) = msgspec.convert(JOB, Job).spec.tasks

    assert task.min_available == 0
    assert task.max_retry == 0


def test_what_only_the_schema_forbids_still_decodes() -> None:
    job = msgspec.convert(
        {"spec": {"tasks": [{"replicas": -1, "policies": [{"event": "x"}]}]}}, Job
    )

    assert job.spec.tasks[0].replicas == -1


@pytest.mark.parametrize("spec", [{"weight": 2**31}, {"weight": "1"}, {"capability": {"cpu": []}}])
def test_what_no_decoder_of_volcano_takes_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\."):
        msgspec.convert({"spec": spec}, Queue)


@pytest.mark.parametrize("description", CATALOGUE, ids=lambda d: d.resource.title)
def test_every_kind_decodes_an_object_of_which_only_the_name_is_known(description: Any) -> None:
    found = msgspec.convert({"metadata": {"name": "x"}}, description.struct)

    assert found.metadata.key == "x"
    assert found.kind == description.resource.kind
