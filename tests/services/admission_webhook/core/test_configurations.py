"""The registered configurations: narrow rules, fail open, all replicas' CAs, and the members."""

import base64
from typing import Any

import pytest

from services.admission_webhook.core.configurations import (
    DIGEST,
    MEMBERS,
    PROBE,
    Address,
    Member,
    Phase,
    closed_configuration,
    configuration,
    probe_configuration,
    probe_object,
    read_members,
)

URL = Address(url="https://127.0.0.1:9443/")
SERVICE = Address(service_namespace="tutti", service_name="webhook")
NAMES = ("tutti", "volcano")
OPT_IN = "opt-in.tutti.dev"
OPT_IN_OWNED = "opt-in-owned.tutti.dev"
#: The labels of the namespaces that a webhook is closed in.
CLOSED = {
    OPT_IN: {"tutti.dev/schedule": "true"},
    OPT_IN_OWNED: {"tutti.dev/schedule": "true", "tutti.dev/gang": "all"},
}


def made(phase: Phase = "validate", address: Address = URL, **options: Any) -> Any:
    members = {"a": Member(address=address, ca="CA of a\n"), "b": Member(address=address, ca="B")}
    return configuration(phase, members, address, NAMES, **options)


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_every_webhook_leaves_the_system_alone_and_fails_open_but_for_namespaces_that_opted_in(
    phase: Phase,
) -> None:
    webhooks = made(phase)["webhooks"]
    assert webhooks
    for webhook in webhooks:
        labels = CLOSED.get(webhook["name"])
        assert webhook["failurePolicy"] == ("Ignore" if labels is None else "Fail")
        assert webhook["namespaceSelector"].get("matchLabels") == labels
        assert webhook["timeoutSeconds"] <= 5
        assert webhook["sideEffects"] == "None"
        assert webhook["matchPolicy"] == "Equivalent"
        (expression,) = webhook["namespaceSelector"]["matchExpressions"]
        assert (expression["operator"], expression["values"]) == ("NotIn", ["kube-system"])
        for rule in webhook["rules"]:
            assert "*" not in str(rule)


def test_pods_are_only_validated_and_only_those_of_our_schedulers() -> None:
    pods = [
        webhook
        for phase in ("mutate", "validate")
        for webhook in made(phase, opt_in=False)["webhooks"]
        if any(rule["resources"] == ["pods"] for rule in webhook["rules"])
    ]
    (webhook,) = pods
    assert webhook["rules"][0]["operations"] == ["CREATE"]
    (condition,) = webhook["matchConditions"]
    assert "object.spec.schedulerName in ['tutti', 'volcano']" in condition["expression"]


def opt_in_webhook(name: str = OPT_IN, **options: Any) -> Any:
    return next((one for one in made("mutate", **options)["webhooks"] if one["name"] == name), None)


def test_namespaces_opt_in_for_pods_of_gangs_that_name_a_scheduler_that_gives_way() -> None:
    webhook = opt_in_webhook()
    (rule,) = webhook["rules"]
    assert (rule["resources"], rule["operations"]) == (["pods"], ["CREATE"])
    assert webhook["clientConfig"]["url"] == "https://127.0.0.1:9443/opt-in"
    named, declares = (one["expression"] for one in webhook["matchConditions"])
    assert "['default-scheduler', 'kai-scheduler', 'kube-batch']" in named
    assert "'scheduling.k8s.io/group-name'" in declares
    assert "tutti.dev/" not in declares


def test_pods_of_operators_objects_that_name_kube_scheduler_have_a_webhook_of_their_own() -> None:
    webhook = opt_in_webhook(OPT_IN_OWNED)
    assert webhook["clientConfig"]["url"] == "https://127.0.0.1:9443/opt-in-owned"
    named, owned = (one["expression"] for one in webhook["matchConditions"])
    assert named.endswith("in ['default-scheduler']")
    assert "owner.apiVersion.startsWith('batch/') && owner.kind == 'Job'" in owned
    assert "owner.apiVersion == 'v1' && owner.kind == 'Pod'" in owned
    assert "['leaderworkerset.sigs.k8s.io/group-index'].exists" in owned


@pytest.mark.parametrize("name", CLOSED)
def test_without_cel_or_when_switched_off_no_namespace_can_opt_in(name: str) -> None:
    assert opt_in_webhook(name, with_conditions=False) is None
    assert opt_in_webhook(name, opt_in=False) is None


def test_after_the_last_replica_only_the_namespaces_that_opted_in_stay_closed() -> None:
    owner = {"kind": "ClusterRole", "name": "a", "uid": "1"}
    left = Member(address=SERVICE, ca="CA of a")
    closed = closed_configuration(left, NAMES, owner=owner)
    assert [(one["name"], one["failurePolicy"]) for one in closed["webhooks"]] == [
        (OPT_IN, "Fail"),
        (OPT_IN_OWNED, "Fail"),
    ]
    paths = [one["clientConfig"]["service"]["path"] for one in closed["webhooks"]]
    assert paths == ["/opt-in", "/opt-in-owned"]
    assert closed["metadata"]["ownerReferences"] == [owner]
    assert read_members(closed["metadata"]["annotations"]) == {}


def test_defaults_are_for_creations_only() -> None:
    operations = {
        tuple(rule["operations"])
        for webhook in made("mutate")["webhooks"]
        for rule in webhook["rules"]
    }
    assert operations == {("CREATE",)}


def test_an_api_server_without_cel_gets_the_same_without_conditions() -> None:
    for webhook in made(with_conditions=False)["webhooks"]:
        assert "matchConditions" not in webhook


def test_the_registered_bundle_trusts_every_replicas_ca() -> None:
    client = made()["webhooks"][0]["clientConfig"]
    assert base64.b64decode(client["caBundle"]) == b"B\nCA of a\n"
    assert client["url"] == "https://127.0.0.1:9443/validate"


def test_behind_a_service_the_service_is_named() -> None:
    client = made("mutate", SERVICE)["webhooks"][0]["clientConfig"]
    assert client["service"] == {
        "namespace": "tutti",
        "name": "webhook",
        "path": "/mutate",
        "port": 443,
    }
    assert "url" not in client


def test_members_of_a_configuration_can_be_read_back() -> None:
    notes = made()["metadata"]["annotations"]
    members = read_members(notes)
    assert {name: member.ca for name, member in members.items()} == {"a": "CA of a\n", "b": "B"}
    assert members["a"].address == URL


@pytest.mark.parametrize("text", ["", "no", "[]", '{"members": 3}', '{"members": {"a": {}}}'])
def test_a_note_that_makes_no_sense_names_no_members(text: str) -> None:
    assert read_members({MEMBERS: text}) == {}


def test_the_digest_changes_with_what_matters_and_only_then() -> None:
    def digest(found: Any) -> str:
        return str(found["metadata"]["annotations"][DIGEST])

    assert digest(made()) == digest(made())
    others = [made("mutate"), made(address=SERVICE), made(with_conditions=False)]
    assert len({digest(made()), *map(digest, others)}) == 4


def test_a_probe_looks_at_nothing_but_its_own_object() -> None:
    probe: Any = probe_configuration("p", "random-1", URL, ["CA"])
    (webhook,) = probe["webhooks"]
    selector = webhook["objectSelector"]["matchLabels"]
    assert selector == {PROBE: "random-1"} == probe_object("random-1")["metadata"]["labels"]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["rules"][0]["resources"] == ["configmaps"]


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_a_configuration_goes_with_its_owner_and_is_written_again_for_another(phase: Phase) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "a"}
    first, again, second = (made(phase, owner={**role, "uid": uid}) for uid in ("1", "1", "2"))
    assert first["metadata"]["ownerReferences"] == [{**role, "uid": "1"}]
    assert "ownerReferences" not in made(phase)["metadata"]
    digests = [one["metadata"]["annotations"][DIGEST] for one in (made(phase), first, second)]
    assert len(set(digests)) == 3
    assert first == again
