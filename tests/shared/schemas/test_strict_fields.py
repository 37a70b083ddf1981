"""Fields of an object, compared with its schema as by the API server."""

from typing import Any

import pytest
import yaml

from shared.schemas.strict_fields import field_errors

QUEUE = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: SPEC}"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: SPEC}"
STATEFUL_SET = (
    "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, "
    "spec: {selector: {}, template: {spec: {containers: [{name: c}]}}, EXTRA}}"
)


def errors(text: str) -> list[str]:
    one: dict[str, Any] = yaml.safe_load(text)
    return list(field_errors(one))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (QUEUE.replace("SPEC", "{weight: 1, capability: {cpu: 2, memory: 1Gi}}"), []),
        (QUEUE.replace("SPEC", "{weightX: 1}"), ['unknown field "spec.weightX"']),
        (
            QUEUE.replace("SPEC", "{weight: one}"),
            ['spec.weight: Invalid value: "one": must be of type integer'],
        ),
        (
            QUEUE.replace("SPEC", "{capability: {cpu: 0.5}}"),
            ["spec.capability.cpu: Invalid value: 0.5: must be of type integer or string"],
        ),
        (QUEUE.replace("SPEC", "5"), ["spec: Invalid value: 5: must be of type object"]),
        (QUEUE.replace("spec:", "specs:").replace("SPEC", "{}"), ['unknown field "specs"']),
        (
            QUEUE.replace("name: q", "labels: {a: 1}").replace("SPEC", "{}"),
            ["metadata.labels.a: Invalid value: 1: must be of type string"],
        ),
        (POD.replace("SPEC", "{containers: [{name: c}], nodeName: null}"), []),
        (POD.replace("SPEC", "{}"), ["spec.containers: Required value"]),
        (
            POD.replace("SPEC", "{containers: [{resources: {requests: {cpu: 0.5}}}]}"),
            ["spec.containers[0].name: Required value"],
        ),
        (STATEFUL_SET.replace("EXTRA", "replicas: 2"), []),
        (STATEFUL_SET.replace("EXTRA", "replica: 2"), ['unknown field "spec.replica"']),
        ("{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {anything: [1]}}", []),
    ],
)
def test_unknown_fields_wrong_types_and_missing_fields_are_named_with_their_paths(
    text: str, found: list[str]
) -> None:
    assert errors(text) == found


def test_the_metadata_of_templates_of_built_in_kinds_is_that_of_any_object() -> None:
    """`kubectl create job --dry-run=client -o yaml` writes `creationTimestamp: null` there."""
    metadata = "{creationTimestamp: null, generateName: x, uid: u, labels: {a: b}}"
    claims = f"volumeClaimTemplates: [{{metadata: {metadata}, spec: {{}}}}]"
    text = STATEFUL_SET.replace("EXTRA", claims)
    text = text.replace("template: {", f"template: {{metadata: {metadata}, ", 1)
    assert errors(text) == []
    assert errors(text.replace("generateName", "generateNameX")) == [
        'unknown field "spec.template.metadata.generateNameX"',
        'unknown field "spec.volumeClaimTemplates[0].metadata.generateNameX"',
    ]
