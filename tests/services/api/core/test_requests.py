"""What requests ask for, and how violations are named."""

import pytest

from services.api.core.openapi import VERSION_PATH
from services.api.core.requests import FieldSelector, continue_token, read_options, read_target
from services.api.core.versions import Version
from services.api.errors import RequestFailed

#: What kubectl sends for `get`.
KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/gangs", ("gangs", "", "")),
        ("/namespaces/a/gangs", ("gangs", "a", "")),
        ("/namespaces/a/gangs/x", ("gangs", "a", "x")),
        ("/namespaces/namespaces/gangs/gangs", ("gangs", "namespaces", "gangs")),
        ("/queues", ("queues", "", "")),
        ("/nodes/n", ("nodes", "", "n")),
    ],
)
def test_a_path_names_resource_namespace_and_object(
    path: str, expected: tuple[str, str, str]
) -> None:
    found = read_target(f"{VERSION_PATH}{path}")
    assert (found.resource.plural, found.namespace, found.name) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"{VERSION_PATH}x/gangs",
        f"{VERSION_PATH}/pods",
        f"{VERSION_PATH}/gangs/x",
        f"{VERSION_PATH}/namespaces/a",
        f"{VERSION_PATH}/namespaces/a/queues",
        f"{VERSION_PATH}/namespaces//gangs",
        f"{VERSION_PATH}/namespaces/a/gangs/x/status",
        "/apis/visibility.tutti.dev/v1/gangs",
    ],
)
def test_nothing_is_at_other_paths(path: str) -> None:
    with pytest.raises(RequestFailed) as refused:
        read_target(path)
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("accept", "answer"),
    [
        (KUBECTL, "table"),
        ("application/json", "object"),
        ("", "object"),
        ("text/html, */*;q=0.8", "object"),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", "object"),
    ],
)
def test_the_first_form_that_is_served_is_sent(accept: str, answer: str) -> None:
    assert read_options({}, accept).answer == answer


def test_options_are_read() -> None:
    query = {
        "limit": "5",
        "continue": continue_token(("a", "x")),
        "resourceVersion": Version(3, 4).text(),
        "watch": "1",
        "timeoutSeconds": "30",
        "sendInitialEvents": "true",
        "fieldSelector": "metadata.name=x,status.phase==Running",
    }
    found = read_options(query, "")
    assert (found.limit, found.after, found.version) == (5, ("a", "x"), Version(3, 4))
    assert (found.watch, found.timeout_s, found.send_initial) == (True, 30, True)
    assert found.selector == FieldSelector(name="x", phase="Running")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"limit": "-1"}, "limit: must be a number"),
        ({"limit": "9" * 30}, "limit: must be a number"),
        ({"watch": "perhaps"}, "watch: must be true or false"),
        ({"continue": "!"}, "continue: is not a token of this API"),
        ({"continue": "WzFd"}, "continue: is not a token of this API"),
        ({"resourceVersion": "x"}, "resourceVersion 'x': must be a number"),
        ({"labelSelector": "a=b"}, "labelSelector: these objects have no labels"),
        ({"fieldSelector": "spec.queue=a"}, "fieldSelector: must be FIELD=VALUE with one of"),
        ({"fieldSelector": "status.phase!=a"}, "fieldSelector: must be FIELD=VALUE with one of"),
        ({"fieldSelector": "status.queue=a,status.queue=b"}, "two values of status.queue"),
        ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch: Exact is not served"),
        ({"includeObject": "All"}, "includeObject: must be None, Metadata or Object"),
    ],
)
def test_a_violation_names_the_parameter_and_its_rule(query: dict[str, str], words: str) -> None:
    with pytest.raises(RequestFailed) as refused:
        read_options(query, "")
    assert refused.value.status == 400
    assert words in refused.value.message


def test_a_form_that_is_not_served_is_refused() -> None:
    with pytest.raises(RequestFailed) as refused:
        read_options({}, "application/vnd.kubernetes.protobuf")
    assert refused.value.status == 406
