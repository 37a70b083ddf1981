"""Explanations show the run limit of a gang, and the field that states it."""

import pytest
import yaml

from tests.shared.explanation.test_understanding import GROUP, POD, only_gang, only_object
from tests.support.golden import Golden

LIMIT = "tutti.dev/run-limit"


def with_notes(manifest: str, **notes: str) -> str:
    document = yaml.safe_load(manifest)
    given = document["metadata"].setdefault("annotations", {})
    given |= notes
    text: str = yaml.safe_dump(document)
    return f"{text}---\n"


def test_the_run_limit_of_a_gang_is_shown_with_the_field_that_states_it(golden: Golden) -> None:
    pod = POD.replace("SCHEDULER", "tutti")
    group = with_notes(GROUP.removesuffix("---\n"), **{LIMIT: "90m"})
    assert only_gang(GROUP, pod).run_limit == ""
    golden(only_gang(group, pod).run_limit)
    limited = pod.replace("{schedulerName", "{activeDeadlineSeconds: 60, schedulerName")
    golden(only_gang(group, limited).run_limit)
    assert only_gang(limited, group).run_limit == only_gang(group, limited).run_limit


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, annotations: {tutti.dev/gang: all, tutti.dev/run-limit: 2h}}
spec:
  parallelism: 2
  activeDeadlineSeconds: 600
  template: {spec: {schedulerName: tutti, containers: [{name: main}]}}
"""
JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, labels: {kueue.x-k8s.io/max-exec-time-seconds: "900"}, annotations: NOTES}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 2
        activeDeadlineSeconds: 300
        template: {spec: {schedulerName: tutti, containers: [{name: main}]}}
"""
VOLCANO_JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, annotations: {slurmjob.slinky.slurm.net/timelimit: "5"}}
spec:
  minAvailable: 2
  tasks:
  - {name: work, replicas: 2, template: {spec: {containers: [{name: main}]}}}
"""


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        (JOB, "600 s, by spec.activeDeadlineSeconds of Job default/train, the smallest of all"),
        (
            JOB_SET.replace("NOTES", "{tutti.dev/gang: all}"),
            "300 s, by spec.activeDeadlineSeconds of the Jobs of JobSet default/train, "
            "the smallest of all",
        ),
        (
            VOLCANO_JOB,
            "300 s, by metadata.annotations[slurmjob.slinky.slurm.net/timelimit] "
            "of Job default/train",
        ),
    ],
    ids=["Job", "JobSet", "Volcano's Job"],
)
def test_a_group_that_a_controller_makes_has_the_limits_of_its_object(
    manifest: str, sentence: str
) -> None:
    assert only_gang(manifest).run_limit == sentence


@pytest.mark.parametrize(
    ("api_version", "kind", "replicas"),
    [
        ("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs"),
        ("kubeflow.org/v1", "TFJob", "tfReplicaSpecs"),
        ("kubeflow.org/v1", "XGBoostJob", "xgbReplicaSpecs"),
        ("kubeflow.org/v1", "PaddleJob", "paddleReplicaSpecs"),
        ("kubeflow.org/v1", "MPIJob", "mpiReplicaSpecs"),
        ("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs"),
    ],
)
def test_the_group_that_a_training_operator_makes_has_the_deadline_of_its_job(
    api_version: str, kind: str, replicas: str
) -> None:
    manifest = f"""
apiVersion: {api_version}
kind: {kind}
metadata: {{name: train}}
spec:
  runPolicy: {{activeDeadlineSeconds: 600}}
  {replicas}:
    Worker: {{replicas: 2, template: {{spec: {{containers: [{{name: main}}]}}}}}}
"""
    assert only_gang(manifest).run_limit.startswith("600 s, by spec.runPolicy.activeDeadline")
    assert not [text for text in only_object(manifest).ignored if "runPolicy" in text]
    stated = manifest.replace(
        "{name: train}", "{name: train, annotations: {tutti.dev/run-limit: 5m}}"
    )
    assert only_gang(stated).run_limit.startswith("300 s, by metadata.annotations")
