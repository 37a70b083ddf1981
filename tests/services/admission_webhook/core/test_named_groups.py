"""Which objects name a PodGroup that is looked up, and the warning when it does not exist."""

from typing import Any

import pytest

from services.admission_webhook.core.named_groups import (
    TEMPLATED,
    NamedGroup,
    missing_group_warning,
    named_group,
)
from shared.admission.gang_declarations import read_declaration
from shared.admission.workloads import RESOURCES
from shared.contracts.annotations import GROUP_NAME
from shared.kube.resources import DEPLOYMENTS, JOBS_BATCH, PODGROUPS_VOLCANO, Resource
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_pod,
    a_pod_group,
    a_task,
    asked,
    review,
)
from tests.support.golden import Golden

NAMED = NamedGroup("team", "traim", "the pod waits")


def named(candidate: Object, **request: Any) -> NamedGroup | None:
    """The group that is looked up for a review of this object."""
    subject = asked(review(candidate, **request))
    dry_run = bool(request.get("dryRun"))
    return None if subject is None else named_group(subject, dry_run=dry_run)


def owned(owned_object: Object, *, controller: bool | None) -> Object:
    owner: Object = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    if controller is not None:
        owner["controller"] = controller
    owned_object["metadata"]["ownerReferences"] = [owner]
    return owned_object


def a_workload(resource: Resource, scheduler: str = "tutti", group: str = "traim") -> Object:
    template = a_pod(scheduler, {GROUP_NAME: group})
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "trial"},
        "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}},
    }


def test_no_object_is_looked_up_of_an_application_that_its_driver_declares() -> None:
    """YuniKorn's task groups are declared by a pod, so that no PodGroup of that name exists."""
    executor = a_pod("tutti", {"yunikorn.apache.org/task-group-name": "executor"})
    executor["metadata"]["labels"] = {"yunikorn.apache.org/app-id": "app1"}
    declared, _ = read_declaration(executor)
    assert declared is not None
    assert not declared.self_declared
    assert named(executor) is None


@pytest.mark.parametrize("scheduler", ["tutti", "volcano", "kube-batch"])
def test_the_group_that_a_users_pod_names_is_looked_up(scheduler: str) -> None:
    assert named(a_pod(scheduler, {GROUP_NAME: "traim"})) == NAMED
    tried = named(a_pod(scheduler, {GROUP_NAME: "traim"}), dryRun=True)
    assert tried == NAMED._replace(dry_run=True)


@pytest.mark.parametrize("controller", [False, None], ids=str)
def test_an_owner_that_is_no_controller_creates_no_pods(controller: bool | None) -> None:
    pod = owned(a_pod("tutti", {GROUP_NAME: "traim"}), controller=controller)
    assert named(pod) == NAMED


@pytest.mark.parametrize(
    "pod",
    [
        owned(a_pod("tutti", {GROUP_NAME: "traim"}), controller=True),
        a_pod("tutti"),
        a_pod("default-scheduler", {GROUP_NAME: "traim"}),
        a_pod("tuti", {GROUP_NAME: "traim"}),
        # A mark that is not read: the pod gets a warning about the mark.
        a_pod("tutti", {"godel.bytedance.com/pod-group-name": "traim"}),
        a_pod("tutti", {GROUP_NAME: ""}),
        a_pod("tutti", {GROUP_NAME: ".."}),
        a_pod("tutti", {GROUP_NAME: "a" * 254}),
        a_pod("tutti", {GROUP_NAME: 5}),
    ],
    ids=[
        "a controller's",
        "no group",
        "another scheduler's",
        "a misspelt scheduler",
        "not read",
        "empty",
        "a path",
        "too long",
        "a number",
    ],
)
def test_no_group_is_looked_up_for(pod: Object) -> None:
    assert named(pod) is None


def test_a_namespace_that_cannot_exist_is_no_part_of_a_path() -> None:
    assert named(a_pod("tutti", {GROUP_NAME: "traim"}), namespace="../x") is None


def test_only_creations_are_looked_up() -> None:
    pod = a_pod("tutti", {GROUP_NAME: "traim"})
    assert named(pod, old=pod) is None
    assert named(pod, operation="DELETE", old=pod) is None


@pytest.mark.parametrize("resource", sorted(TEMPLATED), ids=lambda one: one.kind)
def test_the_group_that_a_template_names_is_looked_up(resource: Resource) -> None:
    found = NAMED._replace(consequence="its pods wait")
    assert named(a_workload(resource), resource=resource) == found
    assert named(a_workload(resource, group=".."), resource=resource) is None
    controlled = owned(a_workload(resource), controller=True)
    assert named(controlled, resource=resource) is None
    assert named(a_workload(resource, "default-scheduler"), resource=resource) is None


def test_operators_and_volcanos_jobs_get_a_group_from_their_controllers() -> None:
    for resource in set(RESOURCES) - TEMPLATED:
        assert named(a_workload(resource), resource=resource) is None
    template = {"metadata": {"annotations": {GROUP_NAME: "traim"}}, "spec": a_pod()["spec"]}
    assert named(a_job(a_task(template=template))) is None
    assert named(a_pod_group(PODGROUPS_VOLCANO)) is None


@pytest.mark.parametrize(
    "broken",
    [{"spec": 5}, {"spec": {"template": []}}, {"spec": {"template": {"metadata": 5}}}],
    ids=str,
)
def test_a_template_of_the_wrong_type_is_no_crash(broken: Object) -> None:
    for resource in (DEPLOYMENTS, JOBS_BATCH):
        assert named({**a_workload(resource), **broken}, resource=resource) is None


def test_the_warning_has_the_words_of_the_pods_condition(golden: Golden) -> None:
    golden(missing_group_warning(NAMED, ()))


def test_a_dry_run_of_a_group_and_its_pod_is_no_alarm() -> None:
    """The API server stores neither of them, so the group of every correct file is missing."""
    warning = missing_group_warning(NAMED._replace(dry_run=True), {"train"})
    assert warning.endswith(
        '(did you mean "train"?), and a dry run creates none; the pod waits until it is created'
    )


@pytest.mark.parametrize("near", ["train", "trai", "traims", "trabm", "rtaim"])
def test_a_name_one_typing_error_away_is_suggested(near: str) -> None:
    warning = missing_group_warning(NAMED, {"other", near})
    assert f'does not exist (did you mean "{near}"?); the pod waits' in warning


@pytest.mark.parametrize(
    "far", ["traim", "traim-1", "traim1", "tr4im", "tra", "training", "miart", ""]
)
def test_a_name_further_away_is_not_disclosed(far: str) -> None:
    assert "did you mean" not in missing_group_warning(NAMED, {far})


def test_of_two_suggestions_the_first_by_name_is_made() -> None:
    assert 'mean "train"' in missing_group_warning(NAMED, {"traix", "train", "traiz"})
