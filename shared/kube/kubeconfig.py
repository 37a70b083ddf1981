"""Reads kubeconfig files as kubectl does, and selects a cluster and a user.

In: the files named by `--kubeconfig` or `$KUBECONFIG`. Several files are merged: the first
    definition of a name wins, relative paths start at the directory of their file. Out: one
    `Access`. It contains the `exec` and `auth-provider` sections unresolved; `credentials` resolves
    them in a process of its own.

`as-user-extra` is refused, because without it requests would have another user's rights. Ignored:
`proxy-url`, `disable-compression`, extensions.
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shared.kube.errors import CredentialsError
from shared.yaml_documents import InvalidYaml, read_document

T = TypeVar("T")

#: A kubeconfig has a few kilobytes; a larger file is not one.
_FILE_BYTES_MAX = 8 * 1024 * 1024


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster and one identity, with the contents of the files that the kubeconfig names. Only
    the token file stays a path, because its token is renewed.
    """

    #: Files and context, for error messages.
    origin: str
    #: Base URL without trailing slash.
    server: str
    namespace: str = "default"
    ca_pem: bytes | None = None
    insecure: bool = False
    tls_server_name: str = ""
    certificate_pem: bytes | None = None
    key_pem: bytes | None = None
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    #: `Impersonate-*` headers (kubeconfig `as`, `as-groups`, `as-uid`), in order.
    impersonate: tuple[tuple[str, str], ...] = ()
    #: The user's `exec` section; a command with a slash is resolved against the file's directory.
    exec_plugin: Mapping[str, Any] | None = None
    #: The user's `auth-provider` section.
    auth_provider: Mapping[str, Any] | None = None


def read_access(files: list[Path], context: str = "", *, must_exist: bool) -> Access:
    """Read the cluster and the identity of one context, "" for the current one. The first of
    several files takes precedence; a missing one is an error only if it must exist (kubectl skips
    missing files of `$KUBECONFIG`).

    Raises:
        CredentialsError: Names the file, the field and the rule.
    """
    merged = _Merged()
    for path in files:
        if must_exist or path.exists():
            merged.include(path)
    return merged.access(context, ", ".join(str(path) for path in files))


class _Entry(msgspec.Struct, frozen=True):
    """A named cluster, user or context, and its file."""

    path: Path
    #: Field path in the file, for error messages: "users[admin].user".
    field: str
    value: Mapping[str, Any]

    def error(self, key: str, rule: str) -> CredentialsError:
        return CredentialsError(f"{self.path}: {self.field}.{key}: {rule}")

    def _typed(self, key: str, kind: type[T], rule: str) -> T | None:
        value = self.value.get(key)
        if value is not None and not isinstance(value, kind):
            raise self.error(key, f"must be {rule}")
        return value

    def text(self, key: str) -> str:
        return self._typed(key, str, "a string") or ""

    def flag(self, key: str) -> bool:
        return self._typed(key, bool, "true or false") or False

    def section(self, key: str) -> Mapping[str, Any] | None:
        return self._typed(key, dict, "a mapping")

    def resolved(self, name: str) -> Path:
        return self.path.parent / Path(name).expanduser()

    def content(self, key: str) -> bytes | None:
        """The bytes of `<key>-data` (base64), or else of the file named by `<key>`; None if both
        are absent.
        """
        data = self.text(f"{key}-data")
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except binascii.Error as error:
                raise self.error(f"{key}-data", f"must be base64: {error}") from None
        name = self.text(key)
        if not name:
            return None
        try:
            return self.resolved(name).read_bytes()
        except OSError as error:
            raise self.error(key, f"cannot be read: {error.strerror}: {name}") from None


class _Merged:
    """Merges several files: the first definition of each name, and the first current-context."""

    def __init__(self) -> None:
        #: By kind and name.
        self._entries: dict[str, dict[str, _Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
        self._current = ""

    def include(self, path: Path) -> None:
        document = _read_yaml(path)
        current = document.get("current-context")
        if isinstance(current, str) and current and not self._current:
            self._current = current
        for kind, entries in self._entries.items():
            singular = kind.removesuffix("s")
            for name, value in _named(path, document, kind, singular):
                entries.setdefault(name, _Entry(path, f"{kind}[{name}].{singular}", value))

    def access(self, context: str, origin: str) -> Access:
        name = context or self._current
        if not name:
            raise CredentialsError(f"{origin}: current-context: must be set, or name a context")
        chosen = self._entry("contexts", name, origin)
        cluster = self._entry("clusters", chosen.text("cluster"), origin)
        user_name = chosen.text("user")
        # kubectl allows a context without a user, for clusters without authentication.
        user = self._entry("users", user_name, origin) if user_name else None
        return _access(f"{origin} (context {name})", chosen, cluster, user)

    def _entry(self, kind: str, name: str, origin: str) -> _Entry:
        entries = self._entries[kind]
        if name not in entries:
            known = ", ".join(sorted(entries)) or "none"
            raise CredentialsError(f"{origin}: {kind}[{name}]: is missing, known are: {known}")
        return entries[name]


def _access(origin: str, context: _Entry, cluster: _Entry, user: _Entry | None) -> Access:
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise cluster.error("server", "must be a URL that starts with https:// or http://")
    access = Access(
        origin=origin,
        server=server,
        namespace=context.text("namespace") or "default",
        ca_pem=cluster.content("certificate-authority"),
        insecure=cluster.flag("insecure-skip-tls-verify"),
        tls_server_name=cluster.text("tls-server-name"),
    )
    return _with_user(access, user) if user is not None else access


def _with_user(access: Access, user: _Entry) -> Access:
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise user.error(missing, "must be given: a client certificate needs both parts")
    # As in kubectl, a token file takes precedence over a token, because only a file can be renewed.
    token_file = user.text("tokenFile")
    return msgspec.structs.replace(
        access,
        certificate_pem=certificate,
        key_pem=key,
        token="" if token_file else user.text("token").strip(),
        token_file=str(user.resolved(token_file)) if token_file else "",
        username=user.text("username"),
        password=user.text("password"),
        impersonate=_impersonation(user),
        exec_plugin=_exec_plugin(user),
        auth_provider=user.section("auth-provider"),
    )


def _impersonation(user: _Entry) -> tuple[tuple[str, str], ...]:
    name, uid = user.text("as"), user.text("as-uid")
    groups = user.value.get("as-groups") or []
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise user.error("as-groups", "must be a list of strings")
    if (uid or groups) and not name:
        raise user.error("as", "must be given: groups or a UID are impersonated only with a user")
    if user.section("as-user-extra"):
        raise user.error("as-user-extra", "is not supported")
    headers = [("Impersonate-User", name)] if name else []
    headers += [("Impersonate-Uid", uid)] if uid else []
    return (*headers, *(("Impersonate-Group", group) for group in groups))


def _exec_plugin(user: _Entry) -> Mapping[str, Any] | None:
    section = user.section("exec")
    if section is None:
        return None
    command = section.get("command")
    if not isinstance(command, str) or not command:
        raise user.error("exec.command", "must name the program to run")
    if "/" in command:
        return {**section, "command": str(user.resolved(command))}
    return section


def _read_yaml(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CredentialsError(f"{path}: cannot be read: {error.strerror}") from None
    if len(text) > _FILE_BYTES_MAX:
        raise CredentialsError(f"{path}: is no kubeconfig: larger than {_FILE_BYTES_MAX} bytes")
    try:
        document = read_document(text)
    except InvalidYaml as error:
        raise CredentialsError(f"{path}: is no YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise CredentialsError(f"{path}: is no kubeconfig: must be a mapping")
    return document


def _named(
    path: Path, document: Mapping[str, Any], kind: str, singular: str
) -> list[tuple[str, Mapping[str, Any]]]:
    items = document.get(kind) or []
    if not isinstance(items, list):
        raise CredentialsError(f"{path}: {kind}: must be a list")
    named: list[tuple[str, Mapping[str, Any]]] = []
    for index, item in enumerate(items):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise CredentialsError(f"{path}: {kind}[{index}].name: must be a string")
        value = item.get(singular) or {}
        if not isinstance(value, dict):
            raise CredentialsError(f"{path}: {kind}[{item['name']}].{singular}: must be a mapping")
        named.append((item["name"], value))
    return named
