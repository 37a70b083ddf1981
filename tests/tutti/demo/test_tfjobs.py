"""The demo's TFJobs are the seeds', word for word, but for what the experiment needs."""

import hashlib
from pathlib import Path

import pytest

from tutti.demo import stage as tfjobs
from tutti.demo.stage import BUDGET, GANG_SCHEDULING, PODGROUP, printed, size, varied

#: SHA-256 of the manifests' words as the seeds print them, one blank between two.
WORDS = {
    "000-gang-scheduling.yaml": "5688fd6c2b402cb69f03672f059ef2c471e6fdeeab29abec1d0d1d4f423ffefe",
    "000-podgroup.yaml": "ec07f0381f8591fbc8e972bf26fbe595569165e8be63aa11c2f8e662517b1946",
    "002-gang-scheduling.yaml": "899dc44ee62091d5b193926d3bce1c092e23dedcbe82e20b88c3bd1cadc6ef01",
}


@pytest.mark.parametrize("file", [GANG_SCHEDULING, PODGROUP, BUDGET])
def test_a_manifest_has_the_words_of_its_seed(file: str) -> None:
    text = (Path(tfjobs.__file__).parent / "manifests" / file).read_text()
    assert hashlib.sha256(" ".join(text.split()).encode()).hexdigest() == WORDS[file]


@pytest.mark.parametrize("file", [GANG_SCHEDULING, PODGROUP, BUDGET])
def test_only_the_replicas_change_when_nothing_else_is_asked_for(file: str) -> None:
    job = varied(file, {"Worker": 6})
    assert job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 6
    job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = printed(file)["spec"]["tfReplicaSpecs"][
        "Worker"
    ]["replicas"]
    assert job == printed(file)


def test_a_second_name_is_its_groups_name_too() -> None:
    job = varied(GANG_SCHEDULING, {"Worker": 3}, name="second")
    assert job["metadata"] == {"name": "second", "namespace": "kubeflow"}
    assert size(job) == 4
    for replica in job["spec"]["tfReplicaSpecs"].values():
        annotations = replica["template"]["metadata"]["annotations"]
        assert annotations == {"scheduling.k8s.io/group-name": "second"}
        assert replica["template"]["spec"]["schedulerName"] == "kube-batch"


def test_the_contrast_names_another_scheduler_everywhere() -> None:
    job = varied(BUDGET, {}, scheduler_name="plain")
    names = {
        replica["template"]["spec"]["schedulerName"]
        for replica in job["spec"]["tfReplicaSpecs"].values()
    }
    assert names == {"plain"}


def test_a_replica_type_that_is_not_there_is_refused() -> None:
    with pytest.raises(KeyError, match="Chief"):
        varied(PODGROUP, {"Chief": 1})
