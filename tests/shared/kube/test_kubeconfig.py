"""Kubeconfig files as kubectl reads them: merging, relative paths, and errors that name file, field
and rule.
"""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.kube.errors import CredentialsError
from shared.kube.kubeconfig import read_access


def kubeconfig(path: Path, name: str = "one", **changes: Any) -> Path:
    """A complete file; a change replaces a whole section, None removes it."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443/"}}],
        "users": [{"name": name, "user": {"token": f"token-{name}"}}],
    }
    document.update(changes)
    path.write_text(yaml.safe_dump({key: value for key, value in document.items() if value}))
    return path


def user(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "one", "user": fields}]


def cluster(**fields: Any) -> list[dict[str, Any]]:
    return [{"name": "one", "cluster": {"server": "https://one.example", **fields}}]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_the_current_context_names_the_server_and_the_user(tmp_path: Path) -> None:
    access = read_access([kubeconfig(tmp_path / "config")], must_exist=True)
    assert access.server == "https://one.example:6443"
    assert (access.token, access.namespace) == ("token-one", "default")


def test_a_context_is_chosen_by_name(tmp_path: Path) -> None:
    contexts = [
        {"name": "one", "context": {"cluster": "one", "user": "one"}},
        {"name": "two", "context": {"cluster": "one", "user": "one", "namespace": "shop"}},
    ]
    file = kubeconfig(tmp_path / "config", contexts=contexts)
    assert read_access([file], "two", must_exist=True).namespace == "shop"


def test_in_a_list_of_files_the_first_mention_wins(tmp_path: Path) -> None:
    without: dict[str, Any] = {"current-context": None, "contexts": None, "users": None}
    first = kubeconfig(tmp_path / "a", **without)
    second = kubeconfig(tmp_path / "b", clusters=cluster(server="https://never.example"))
    third = kubeconfig(tmp_path / "c", "two")
    files = [first, tmp_path / "missing", second, third]
    access = read_access(files, must_exist=False)
    assert (access.server, access.token) == ("https://one.example:6443", "token-one")
    assert read_access(files, "two", must_exist=False).token == "token-two"


def test_certificates_are_taken_inline_or_from_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca", "crt", "key"):
        (tmp_path / "pki" / name).write_bytes(name.encode())
    files = kubeconfig(
        tmp_path / "files",
        clusters=cluster(**{"certificate-authority": "pki/ca"}),
        users=user(**{"client-certificate": "pki/crt", "client-key": str(tmp_path / "pki/key")}),
    )
    inline = kubeconfig(
        tmp_path / "inline",
        clusters=cluster(**{"certificate-authority-data": b64(b"ca")}),
        users=user(
            **{"client-certificate-data": b64(b"crt"), "client-key-data": b64(b"key")},
        ),
    )
    for file in (files, inline):
        access = read_access([file], must_exist=True)
        assert (access.ca_pem, access.certificate_pem, access.key_pem) == (b"ca", b"crt", b"key")


def test_flags_names_and_impersonation_are_read(tmp_path: Path) -> None:
    file = kubeconfig(
        tmp_path / "config",
        clusters=cluster(**{"insecure-skip-tls-verify": True, "tls-server-name": "api"}),
        users=user(**{"tokenFile": "t", "token": "x", "as": "jane", "as-groups": ["a", "b"]}),
    )
    access = read_access([file], must_exist=True)
    assert access.insecure
    assert access.tls_server_name == "api"
    assert (access.token, access.token_file) == ("", str(tmp_path / "t"))
    assert access.impersonate == (
        ("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")
    )  # fmt: skip


def test_a_plugins_relative_path_starts_at_the_file(tmp_path: Path) -> None:
    for command, expected in (("./bin/login", str(tmp_path / "bin/login")), ("login", "login")):
        section = {"command": command, "args": ["x"]}
        file = kubeconfig(tmp_path / "config", users=user(exec=section))
        plugin = read_access([file], must_exist=True).exec_plugin
        assert plugin == {"command": expected, "args": ["x"]}


def test_a_context_without_user_is_anonymous(tmp_path: Path) -> None:
    contexts = [{"name": "one", "context": {"cluster": "one"}}]
    access = read_access([kubeconfig(tmp_path / "c", contexts=contexts)], must_exist=True)
    assert access.token == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"current-context": None}, r"config: current-context: must be set"),
        ({"current-context": "x"}, r"config: contexts\[x\]: is missing, known are: one"),
        ({"clusters": None}, r"config: clusters\[one\]: is missing, known are: none"),
        ({"users": None}, r"config: users\[one\]: is missing"),
        ({"users": "x"}, r"config: users: must be a list"),
        ({"users": [{"user": {}}]}, r"config: users\[0\]\.name: must be a string"),
        ({"users": [{"name": "one", "user": 3}]}, r"users\[one\]\.user: must be a mapping"),
        (
            {"clusters": cluster(server="one.example")},
            r"clusters\[one\]\.cluster\.server: must be a URL",
        ),
        ({"clusters": cluster(server=7)}, r"clusters\[one\]\.cluster\.server: must be a string"),
        (
            {"clusters": cluster(**{"certificate-authority-data": "***"})},
            r"cluster\.certificate-authority-data: must be base64",
        ),
        (
            {"clusters": cluster(**{"certificate-authority": "nowhere"})},
            r"cluster\.certificate-authority: cannot be read: No such file or directory: nowhere",
        ),
        (
            {"clusters": cluster(**{"insecure-skip-tls-verify": "yes"})},
            r"insecure-skip-tls-verify: must be true or false",
        ),
        (
            {"users": user(**{"client-certificate-data": b64(b"x")})},
            r"users\[one\]\.user\.client-key: must be given",
        ),
        ({"users": user(token=[])}, r"users\[one\]\.user\.token: must be a string"),
        ({"users": user(**{"as-groups": ["a"]})}, r"users\[one\]\.user\.as: must be given"),
        (
            {"users": user(**{"as": "a", "as-user-extra": {"b": []}})},
            r"as-user-extra: is not supported",
        ),
        ({"users": user(exec={"args": []})}, r"exec\.command: must name the program"),
        ({"users": user(**{"auth-provider": "gcp"})}, r"auth-provider: must be a mapping"),
    ],
)
def test_an_error_names_file_field_and_rule(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    file = kubeconfig(tmp_path / "config", **changes)
    with pytest.raises(CredentialsError, match=message) as error:
        read_access([file], must_exist=True)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "is no YAML"),
        (b"- a", "is no kubeconfig: must be a mapping"),
        (b"\xff\xfe\x00", "is no YAML"),
        (b"x: !!python/object/apply:os.getcwd []", "is no YAML"),
        (b"", "current-context: must be set"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(text)
    with pytest.raises(CredentialsError, match=message):
        read_access([file], must_exist=True)


def test_a_file_that_must_exist_is_missed(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="nowhere: cannot be read: No such file"):
        read_access([tmp_path / "nowhere"], must_exist=True)
