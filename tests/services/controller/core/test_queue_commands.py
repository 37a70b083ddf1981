"""Which Commands on queues are carried out, and why the remaining ones are not."""

import pytest

from services.controller.core.queue_commands import DIGEST, admission_policy, refusal
from shared.kinds.command import Command
from shared.kinds.metadata import Metadata
from shared.kinds.queue import Queue
from shared.kube.objects import OwnerReference, instant_ms
from shared.kube.resources import ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS
from tests.services.controller.core.test_queues import ROOT, queue

QUEUES: dict[str, Queue] = {"root": ROOT, "team": queue("team")}


def order(
    action: str = "CloseQueue", name: str = "team", uid: str = "u-team", namespace: str = "tenant"
) -> Command:
    target = OwnerReference(kind="Queue", name=name, uid=uid)
    return Command(metadata=Metadata(name="c", namespace=namespace), action=action, target=target)


@pytest.mark.parametrize("action", ["OpenQueue", "CloseQueue"])
def test_a_reviewed_command_on_a_queue_is_carried_out(action: str) -> None:
    created_ms = instant_ms(None)
    assert refusal(order(action), QUEUES, created_ms, ()) == ""
    assert refusal(order(action, uid=""), QUEUES, created_ms, ()) == ""


@pytest.mark.parametrize(
    ("command", "field"),
    [
        pytest.param(order(name="gone"), "target.name", id="no queue"),
        pytest.param(order(uid="u-old"), "target.uid", id="another queue of the name"),
        pytest.param(order("AbortJob"), "action", id="an action of Jobs"),
        pytest.param(order(name="root", uid="u-root"), "action", id="root"),
    ],
)
def test_a_command_that_cannot_be_carried_out_is_refused_with_field_and_rule(
    command: Command, field: str
) -> None:
    assert refusal(command, QUEUES, 0, ()).startswith(f"{field}: ")


@pytest.mark.parametrize("reviewed_from_ms", [None, 1], ids=["never reviewed", "since it exists"])
def test_a_command_without_a_review_needs_a_namespace_that_the_operator_names(
    reviewed_from_ms: int | None,
) -> None:
    assert "requires the right to update" in refusal(order(), QUEUES, reviewed_from_ms, ())
    assert "requires the right to update" in refusal(order(), QUEUES, reviewed_from_ms, ("other",))
    assert refusal(order(), QUEUES, reviewed_from_ms, ("other", "tenant")) == ""


def test_the_policy_fails_closed_and_leaves_out_only_named_namespaces() -> None:
    (_, policy), (_, binding) = admission_policy("p", ("b", "a"), None)
    assert policy["spec"]["failurePolicy"] == "Fail"
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    (expression,) = selector["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("NotIn", ["a", "b"])
    assert "matchResources" not in admission_policy("p", (), None)[1][1]["spec"]


def test_a_policy_with_another_content_has_another_digest() -> None:
    def digests(*namespaces: str) -> list[str]:
        found = admission_policy("p", namespaces, None)
        assert [resource for resource, _ in found] == [
            ADMISSION_POLICIES,
            ADMISSION_POLICY_BINDINGS,
        ]
        return [manifest["metadata"]["annotations"][DIGEST] for _, manifest in found]

    assert digests() == digests()
    assert digests()[0] == digests("a")[0]
    assert digests()[1] != digests("a")[1]
