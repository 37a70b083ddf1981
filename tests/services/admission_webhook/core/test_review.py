"""The wire: a request that is no review is refused, and answers are as the API server expects."""

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.admission.admission import apply_defaults, subject_of, validate
from shared.admission.review import (
    ERRORS_MAX,
    BadReview,
    Verdict,
    added,
    decode_review,
    encode_answer,
)
from shared.dialects.protocol import FieldError
from tests.services.admission_webhook.reviews import (
    RESOURCES,
    reference_objects,
    review,
    volcano_queue,
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"[]",
        b"{}",
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":7}}',
        b'{"kind":"Pod","apiVersion":"v1"}',
    ],
    ids=lambda body: body.decode()[:60] or "nothing",
)
def test_what_is_no_review_is_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(BadReview, match=r"\w"):
        decode_review(body)


def test_a_refusal_lists_every_violation_with_its_field() -> None:
    errors = (
        FieldError(path="spec.a", message="is wrong"),
        FieldError(path="spec.b", message="too"),
    )
    answer = msgspec.json.decode(encode_answer("u-1", Verdict(errors=errors)))
    assert answer == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "u-1",
            "allowed": False,
            "status": {
                "status": "Failure",
                "message": "spec.a: is wrong; spec.b: too",
                "reason": "BadRequest",
                "code": 400,
                "details": {
                    "causes": [
                        {"reason": "FieldValueInvalid", "field": "spec.a", "message": "is wrong"},
                        {"reason": "FieldValueInvalid", "field": "spec.b", "message": "too"},
                    ]
                },
            },
        },
    }


def test_thousands_of_violations_make_a_message_of_bounded_length() -> None:
    errors = tuple(FieldError(path=f"spec.tasks[{i}]", message="bad") for i in range(5000))
    status = msgspec.json.decode(encode_answer("u", Verdict(errors=errors)))["response"]["status"]
    assert len(status["details"]["causes"]) == ERRORS_MAX
    assert status["message"].endswith(f"; and {5000 - ERRORS_MAX} more")


def test_a_patch_travels_as_base64_and_warnings_are_cut_to_what_is_shown() -> None:
    verdict = Verdict(patch=(added(3, "spec", "a/b", 0, "c~d"),), warnings=("w" * 300,))
    response = msgspec.json.decode(encode_answer("u", verdict))["response"]
    assert response["patchType"] == "JSONPatch"
    assert msgspec.json.decode(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/spec/a~1b/0/c~0d", "value": 3}
    ]
    assert response["warnings"] == ["w" * 255 + "…"]


def test_an_allowed_review_without_more_says_just_that() -> None:
    response = msgspec.json.decode(encode_answer("u", Verdict()))["response"]
    assert response == {"uid": "u", "allowed": True}


MEMBERS = [
    *("metadata", "name", "annotations", "spec", "queue", "parent", "tasks", "replicas"),
    *("minAvailable", "minMember", "weight", "capability", "deserved", "guarantee", "resource"),
    *("cpu", "memory", "partitionPolicy", "template", "hostNetwork", "minPartitions"),
    *("schedulerName", "subGroupPolicy", "networkTopology", "status"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)
KNOWN = reference_objects(
    volcano_queue("a", capability=(("cpu", 1),)), volcano_queue("b", parent="a")
)


@pytest.mark.parametrize("kind", RESOURCES, ids=str)
@given(data=st.data())
def test_nothing_that_json_can_hold_is_a_crash(kind: tuple[str, str], data: st.DataObject) -> None:
    resource = RESOURCES[kind]
    candidate = data.draw(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JSON))
    old = data.draw(st.none() | st.dictionaries(st.just("spec"), JSON))
    operation = data.draw(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]))
    names = ("volcano", "", "tutti")
    body = review(candidate, old=old, resource=resource, operation=operation)
    found = subject_of(decode_review(body), reference_objects(names=names))
    if found is not None:
        encode_answer("u", apply_defaults(found))
        encode_answer("u", validate(found))
        validate(found._replace(case=msgspec.structs.replace(found.case, known=KNOWN)))
