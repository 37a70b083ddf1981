"""The judge of the audit, by lines of a log as an API server writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rights.audit import apiserver_args, judge, read
from tutti.rights.table import Account, Right

WRITER = Account(
    name="binder",
    rights=(
        Right(group="", resource="pods/binding", verbs=("create",), why="bind"),
        Right(group="", resource="pods", verbs=("get", "delete"), why="release"),
        Right(
            group="",
            resource="secrets",
            verbs=("get",),
            why="read",
            names=("RELEASE-key",),
            namespaced=True,
        ),
    ),
)


def line(verb: str, resource: str, *, account: str = "home:binder", **about: Any) -> str:
    resource, _, subresource = resource.partition("/")
    more = {"subresource": subresource} if subresource else {}
    decision = about.pop("decision", "allow")
    return json.dumps(
        {
            "verb": verb,
            "user": {"username": f"system:serviceaccount:{account}"},
            "objectRef": {"resource": resource, **more, **about},
            "annotations": {"authorization.k8s.io/decision": decision},
        }
    )


ALL = (
    line("create", "pods/binding", namespace="a", name="b"),
    line("get", "pods"),
    line("delete", "pods"),
    line("get", "secrets", namespace="home", name="one-key"),
)


def judged(folder: Path, *lines: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    (folder / "1.log").write_text("\n".join(lines))
    return judge(read(folder), [WRITER])


def test_what_is_allowed_and_used_is_well(tmp_path: Path) -> None:
    assert judged(tmp_path, *ALL, '{"cut by a kil') == ((), ())


def test_a_denied_request_is_reported_whatever_else_was_used(tmp_path: Path) -> None:
    denied, unused = judged(
        tmp_path, *ALL, line("create", "pods", namespace="a", decision="forbid")
    )
    assert denied == ("binder: create pods. a",)
    assert unused == ()
    other = line("get", "secrets", namespace="home", name="other", decision="forbid")
    assert judged(tmp_path, *ALL, other)[0] == ("binder: get secrets. home/other",)


def test_what_the_table_allows_is_not_used_by_being_denied(tmp_path: Path) -> None:
    """A server that starts denies it, and then allows it."""
    late = line("get", "pods", decision="forbid")
    assert judged(tmp_path, late, *ALL) == ((), ())
    never = [late if one == line("get", "pods") else one for one in ALL]
    assert judged(tmp_path, *never) == ((), ("binder: get pods. ",))


@pytest.mark.parametrize(
    ("instead", "unused"),
    [
        ("", "binder: get pods. "),
        (line("list", "pods"), "binder: get pods. "),
        (line("get", "pods/status"), "binder: get pods. "),
        (line("get", "pods", apiGroup="metrics.k8s.io"), "binder: get pods. "),
        (line("get", "pods", account="home:watcher"), "binder: get pods. "),
        (line("get", "pods", account="somebody"), "binder: get pods. "),
    ],
)
def test_a_right_counts_as_used_by_its_own_account_verb_and_resource_only(
    tmp_path: Path, instead: str, unused: str
) -> None:
    lines = [instead if one == line("get", "pods") else one for one in ALL]
    assert judged(tmp_path, *lines) == ((), (unused,))


@pytest.mark.parametrize("about", [("home", "key"), ("elsewhere", "one-key")])
def test_a_right_on_names_at_home_is_used_there_and_by_such_names_only(
    tmp_path: Path, about: tuple[str, str]
) -> None:
    namespace, name = about
    lines = [*ALL[:-1], line("get", "secrets", namespace=namespace, name=name)]
    assert judged(tmp_path, *lines)[1] == ("binder: get secrets. RELEASE-key",)


def test_every_api_server_gets_a_log_of_its_own(tmp_path: Path) -> None:
    def path() -> Path:
        (flag,) = (one for one in apiserver_args(tmp_path) if "log-path" in one)
        return Path(flag.partition("=")[2])

    first = path()
    first.touch()
    assert path() != first
    assert (tmp_path / "policy.yaml").is_file()
