"""The chart's tables of rights are those of the code, and hold no right that gives others."""

from pathlib import Path

import yaml

from shared.kinds.catalogue import CATALOGUE
from tutti.rights.rules import permissions_file, rights_file, rules, user_roles, user_roles_file
from tutti.rights.table import Right

FILES = Path(__file__).parents[3] / "deploy" / "chart" / "files"


def test_the_committed_files_are_what_make_manifests_writes() -> None:
    for name, text in (
        ("rights.yaml", rights_file()),
        ("nats-permissions.yaml", permissions_file()),
        ("user-roles.yaml", user_roles_file()),
    ):
        assert (FILES / name).read_text("utf-8") == text, f"{name}: run `make manifests`"


def test_rights_on_the_same_objects_are_one_rule_and_equal_ones_share_it() -> None:
    def right(resource: str, *verbs: str, names: tuple[str, ...] = ()) -> Right:
        return Right(group="", resource=resource, verbs=verbs, why="", names=names)

    assert rules(
        [
            right("pods", "patch"),
            right("pods", "get", "patch"),
            right("nodes", "get", "patch"),
            right("pods", "delete", names=("one",)),
        ]
    ) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "patch"]},
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "resourceNames": ["one"],
            "verbs": ["delete"],
        },
    ]


def test_the_planner_has_no_token_and_only_the_binder_binds() -> None:
    content = yaml.safe_load(rights_file())

    assert content["gang-planner"] == {"account": False, "clusterRules": [], "namespacedRules": []}
    assert [
        name
        for name, account in content.items()
        for rule in account["clusterRules"] + account["namespacedRules"]
        if "pods/binding" in rule["resources"]
    ] == ["binder"]


def test_users_roles_add_up_and_leave_writing_of_cluster_objects_to_administrators() -> None:
    roles = user_roles()
    kinds = {
        name: {
            (group, resource)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        for name, role in roles.items()
    }
    every = {(kind.resource.group, kind.resource.plural) for kind in CATALOGUE}
    assert kinds["view"] == kinds["edit"] | kinds["edit-cluster"] == every
    assert kinds["edit-cluster"] == {
        (kind.resource.group, kind.resource.plural)
        for kind in CATALOGUE
        if not kind.resource.namespaced
    }
    assert ("scheduling.volcano.sh", "queues") in kinds["edit-cluster"]
    assert {name: role["aggregatedTo"] for name, role in roles.items()} == {
        "view": ["view", "edit", "admin"],
        "edit": ["edit", "admin"],
        "edit-cluster": [],
    }
    for rule in roles["view"]["rules"]:
        assert rule["verbs"] == ["get", "list", "watch"]
