"""What counts as another scheduler: tables of what the API server shows."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from shared.kube.leases import LIVES_S, Lease, LeaseSpec
from shared.kube.objects import KubeObject, ObjectMeta
from tutti.up.other_schedulers import (
    LOCK_ANNOTATION,
    Deployment,
    OtherScheduler,
    ReferenceObjects,
    find_other_schedulers,
    refusal,
    served_names,
)

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
NAMES = ("tutti", "kube-batch", "volcano")


class ConfigMap(KubeObject, frozen=True, kw_only=True):
    """A lock of kube-batch."""


def lease(
    name: str,
    *,
    namespace: str = "volcano-system",
    holder: str = "vc-scheduler-7c4_1",
    age_s: float = 3.0,
) -> Lease:
    return Lease(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=LeaseSpec(
            holder_identity=holder,
            acquire_time=NOW - timedelta(hours=1),
            renew_time=NOW - timedelta(seconds=age_s),
        ),
    )


def deployment(
    name: str, *, available: int = 1, image: str = "", command: str = "", args: str = ""
) -> Deployment:
    container = {"image": image, "command": command.split(), "args": args.split()}
    return Deployment(
        metadata=ObjectMeta(name=name, namespace="somewhere"),
        spec={"template": {"spec": {"containers": [container]}}},
        status={"availableReplicas": available},
    )


def lock(name: str, record: object) -> ConfigMap:
    text = record if isinstance(record, str) else json.dumps(record)
    notes = {LOCK_ANNOTATION: text}
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="kube-system", annotations=notes))


def found(around: ReferenceObjects, dead: str = "") -> list[OtherScheduler]:
    return find_other_schedulers(around, NAMES, lambda holder: holder == dead)


def seen(*things: Lease | Deployment | ConfigMap) -> ReferenceObjects:
    return ReferenceObjects(
        now=NOW,
        leases=[each for each in things if isinstance(each, Lease)],
        deployments=[each for each in things if isinstance(each, Deployment)],
        locks=[each for each in things if isinstance(each, ConfigMap)],
    )


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(lease("volcano"), id="volcano's lease, renewed 3 s ago"),
        pytest.param(lease("volcano", age_s=LIVES_S), id="renewed a minute ago"),
        pytest.param(lease("volcano", age_s=-5), id="renewed by a clock that is ahead of ours"),
        pytest.param(lease("volcano", namespace="elsewhere"), id="in any namespace"),
        pytest.param(deployment("volcano-scheduler"), id="volcano's deployment by its name"),
        pytest.param(
            deployment("sched", image="docker.io/volcanosh/vc-scheduler:v1.15"), id="by its image"
        ),
        pytest.param(
            deployment("mine", args="--scheduler-name=other,volcano"), id="one name of a list"
        ),
        pytest.param(
            deployment("mine", command="/bin/s --scheduler-name volcano --v=3"), id="two words"
        ),
    ],
)
def test_an_active_holder_of_one_of_our_names_is_another_scheduler(
    thing: Lease | Deployment,
) -> None:
    others = found(seen(thing))
    assert [(other.holding, other.name) for other in others] == [("name", "volcano")]
    text = refusal(others)
    assert text.startswith("scheduler name volcano is served by ")
    assert "--scheduler-name" in text
    assert "--take-over" in text


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (lease("kube-scheduler", namespace="kube-system"), "default-scheduler"),
        (lease("koord-scheduler"), "koord-scheduler"),
        (
            deployment("kai-scheduler-default", image="example/scheduler:v1"),
            "kai-scheduler",
        ),
        (deployment("yunikorn-scheduler"), "yunikorn"),
        (deployment("s", image="apache/yunikorn:scheduler-1.7.0"), "yunikorn"),
        (deployment("scheduler-plugins-scheduler"), "scheduler-plugins-scheduler"),
    ],
    ids=lambda given: given if isinstance(given, str) else given.metadata.name,
)
def test_the_owner_of_an_extra_scheduler_name_is_found(
    thing: Lease | Deployment, name: str
) -> None:
    def owners(*names: str) -> list[str]:
        return [one.name for one in find_other_schedulers(seen(thing), names, lambda _: False)]

    assert owners(name) == [name]
    assert owners(*NAMES) == [], "its name is not asked for"


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(lease("volcano", age_s=LIVES_S + 1), id="a lease that is no longer renewed"),
        pytest.param(lease("volcano", holder=""), id="a lease that was given back"),
        pytest.param(
            Lease(metadata=ObjectMeta(name="volcano"), spec=LeaseSpec(holder_identity="x")),
            id="a lease that was never renewed",
        ),
        pytest.param(lease("kube-scheduler"), id="another scheduler's lease"),
        pytest.param(deployment("volcano-scheduler", available=0), id="scaled down or failing"),
        pytest.param(deployment("web", image="nginx"), id="any other deployment"),
        pytest.param(
            deployment("volcano-scheduler", args="--scheduler-name=other"),
            id="volcano itself under another name",
        ),
        pytest.param(lock("kube-batch", "{"), id="a lock that is no JSON"),
        pytest.param(lock("kube-batch", {}), id="a lock without a holder"),
        pytest.param(
            lock("kube-batch", {"holderIdentity": "x", "renewTime": "2020-01-01T00:00:00Z"}),
            id="a lock of years ago",
        ),
        pytest.param(
            ConfigMap(metadata=ObjectMeta(name="kube-batch")), id="a config map that is no lock"
        ),
    ],
)
def test_what_does_not_live_or_serves_other_names_is_none(
    thing: Lease | Deployment | ConfigMap,
) -> None:
    assert not found(seen(thing))


def test_the_message_has_the_holder_its_start_and_its_last_renewal() -> None:
    text = refusal(found(seen(lease("volcano"))))
    assert "Lease volcano-system/volcano" in text
    assert "held by vc-scheduler-7c4_1 since 2026-05-01 11:00:00Z, renewed 3 s ago" in text


def test_kube_batchs_lock_on_a_config_map_counts_while_it_is_renewed() -> None:
    record = {
        "holderIdentity": "kb-0",
        "renewTime": "2026-05-01T11:59:30Z",
        "leaseDurationSeconds": 15,
    }
    others = found(seen(lock("kube-batch", record)))
    assert [other.name for other in others] == ["kube-batch"]
    assert "ConfigMap kube-system/kube-batch (held by kb-0" in others[0].description


def test_another_tutti_up_is_found_unless_it_is_this_one_or_known_to_be_dead() -> None:
    other = lease("tutti", namespace="kube-system", holder="host/boot/1/2")
    assert [other.holding for other in found(seen(other))] == ["suite"]
    assert "another tutti up runs" in refusal(found(seen(other)))
    assert not found(seen(other), dead="host/boot/1/2")


def test_a_lease_of_our_name_in_another_namespace_is_another_scheduler() -> None:
    others = found(seen(lease("tutti", namespace="team")))
    assert [(other.holding, other.name) for other in others] == [("name", "tutti")]


@pytest.mark.parametrize(
    "thing", [lease("vc-controller-manager"), deployment("volcano-controllers")]
)
def test_volcanos_controllers_hold_podgroups_only(thing: Lease | Deployment) -> None:
    """Volcano's controllers with Tutti as the scheduler is a set-up that users have."""
    others = found(seen(thing))
    assert [other.holding for other in others] == ["podgroups"]
    assert not refusal(others)


def test_each_other_scheduler_is_named_in_a_line_of_its_own() -> None:
    text = refusal(found(seen(lease("volcano"), deployment("kube-batch"), lease("other"))))
    assert [line.split(" is ")[0] for line in text.splitlines()] == [
        "scheduler name volcano",
        "scheduler name kube-batch",
    ]


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ("--scheduler-name", set()),
        ("--scheduler-name=", set()),
        ("--scheduler-name a --scheduler-name b", {"a", "b"}),
        ("--scheduler-name=a,b, --v=1", {"a", "b"}),
        ("--scheduler-names=a", set()),
    ],
)
def test_names_are_read_from_flags_in_every_way_they_are_written(
    args: str, names: set[str]
) -> None:
    assert served_names(deployment("d", args=args)) == names
