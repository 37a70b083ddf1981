"""The chart's tables of rights are those of the code, and hold no right that gives others."""

from pathlib import Path

import yaml

from tutti.rights.rules import permissions_file, rights_file, rules
from tutti.rights.table import Right

FILES = Path(__file__).parents[3] / "deploy" / "chart" / "files"


def test_the_committed_files_are_what_make_manifests_writes() -> None:
    for name, text in (
        ("rights.yaml", rights_file()),
        ("nats-permissions.yaml", permissions_file()),
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
