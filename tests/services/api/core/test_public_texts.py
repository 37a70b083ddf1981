"""Texts of one namespace in answers about all of them."""

from services.api.core.listed_objects import public_queues, public_shapes
from shared.contracts.questions import (
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    LedgerTotal,
    ShapeCapacity,
)
from shared.model.objects import Node

SECRET = "secret.example/gpu"
NODE = Node(
    uid="u",
    name="n",
    resource_version=1,
    labels=(("zone", "a"),),
    allocatable=(("cpu", 4000), ("pods", 10)),
)


def test_a_queue_that_only_a_pod_names_is_not_public() -> None:
    ledger = LedgerAnswer(
        queues=(LedgerQueue(name="real", exists=True), LedgerQueue(name="secret", exists=False))
    )
    assert [one.name for one in public_queues(ledger)] == ["real"]


def test_a_resource_that_only_pods_request_is_not_public() -> None:
    amounts = (
        LedgerAmount(resource="cpu", wanted=1),
        LedgerAmount(resource="declared.example/x", ceiling=3),
        LedgerAmount(resource=SECRET, wanted=1),
    )
    ledger = LedgerAnswer(
        queues=(LedgerQueue(name="real", exists=True, amounts=amounts),),
        totals=(
            LedgerTotal(resource="cpu", total=4000, usable=4000),
            LedgerTotal(resource=SECRET, total=0, usable=0),
        ),
    )
    (queue,) = public_queues(ledger)
    assert [one.resource for one in queue.amounts] == ["cpu", "declared.example/x"]


def test_a_selector_and_a_request_that_no_node_has_are_not_public() -> None:
    shape = ShapeCapacity(
        id="0",
        requests=(("cpu", 1), (SECRET, 1)),
        node_selector=(("owner", "secret"), ("zone", "a")),
        members=1,
        waiting=1,
        total=0,
        unfragmented=0,
    )
    (shown,) = public_shapes([shape], [NODE])
    assert shown.requests == (("cpu", 1),)
    assert shown.node_selector == (("zone", "a"),)
