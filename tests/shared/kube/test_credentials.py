"""Where credentials are looked for, and how they are kept fresh. Plugins are real programs in a
real child process.
"""

import base64
import json
import ssl
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from shared.kube.credentials import Credentials, find_access, load
from shared.kube.errors import CredentialsError
from shared.kube.kubeconfig import Access

NOWHERE = Path("nowhere")


class Clocks:
    """Wall and monotonic time, moved by hand."""

    def __init__(self) -> None:
        self.wall_s = 1_000_000.0
        self.monotonic_s = 10.0

    def pass_s(self, seconds: float) -> None:
        self.wall_s += seconds
        self.monotonic_s += seconds

    def credentials(self, **access: Any) -> Credentials:
        access = {"origin": "test", "server": "http://127.0.0.1:1", **access}
        return Credentials(
            Access(**access), wall_s=lambda: self.wall_s, monotonic_s=lambda: self.monotonic_s
        )


def write_kubeconfig(path: Path, **user: Any) -> Path:
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c", "namespace": "shop"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{path.name}"}}],
        "users": [{"name": "c", "user": user}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def service_account(folder: Path) -> Path:
    folder.mkdir()
    (folder / "token").write_text("sa-token\n")
    (folder / "namespace").write_text("tutti-system\n")
    trustme.CA().cert_pem.write_to_path(folder / "ca.crt")
    return folder


def plugin(folder: Path, body: str) -> dict[str, Any]:
    """The `exec` section of a program that counts its runs and prints an ExecCredential."""
    program = folder / "login.py"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "count = int(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text(str(count))\n"
        f"{body}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',"
        " 'kind': 'ExecCredential', 'status': status}))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program),
        "interactiveMode": "Never",
    }


def runs(folder: Path) -> int:
    return int((folder / "runs").read_text())


def test_the_file_given_goes_before_environment_home_and_service_account(tmp_path: Path) -> None:
    given = write_kubeconfig(tmp_path / "given")
    listed = write_kubeconfig(tmp_path / "listed")
    home = write_kubeconfig(tmp_path / "home" / ".kube" / "config")
    mounted = service_account(tmp_path / "sa")
    environ = {
        "KUBECONFIG": f"{tmp_path}/missing:{listed}",
        "HOME": str(tmp_path / "home"),
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    assert find_access(str(given), "", environ, mounted).server == "http://given"
    assert find_access("", "", environ, mounted).server == "http://listed"
    del environ["KUBECONFIG"]
    assert find_access("", "", environ, mounted).server == "http://config"
    home.unlink()
    in_pod = find_access("", "", environ, mounted)
    assert (in_pod.server, in_pod.namespace) == ("https://10.0.0.1:6443", "tutti-system")
    del environ["KUBERNETES_SERVICE_HOST"]
    with pytest.raises(CredentialsError, match="no cluster: give --kubeconfig"):
        find_access("", "", environ, mounted)


def test_a_kubeconfig_variable_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b", "HOME": str(tmp_path)}
    with pytest.raises(CredentialsError, match=r"\$KUBECONFIG: no such file: .*/a, .*/b"):
        find_access("", "", environ, NOWHERE)


def test_a_service_account_without_token_or_ca_is_refused(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "HOME": str(tmp_path)}
    mounted = service_account(tmp_path / "sa")
    assert find_access("", "", environ, mounted).server == "https://[fd00::1]:443"
    (mounted / "ca.crt").unlink()
    with pytest.raises(CredentialsError, match=r"ca\.crt: cannot be read"):
        find_access("", "", environ, mounted)


async def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)}
    mounted = service_account(tmp_path / "sa")
    credentials = await load(environ=environ, service_account=mounted)
    now = credentials.fresh()
    assert now is not None
    assert now.headers["Authorization"] == "Bearer sa-token"
    assert now.tls is not None
    assert now.tls.verify_mode is ssl.CERT_REQUIRED


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A service account's folder, made before the event loop is watched for blocking calls."""
    return service_account(tmp_path / "sa")


async def test_a_server_that_is_given_replaces_the_one_found_and_must_be_a_url(
    tmp_path: Path,
) -> None:
    path = str(write_kubeconfig(tmp_path / "config"))
    credentials = await load(path, server="http://elsewhere:8080/")
    assert (credentials.server, credentials.namespace) == ("http://elsewhere:8080", "shop")
    with pytest.raises(CredentialsError, match="server 'elsewhere': must start with https"):
        await load(path, server="elsewhere")


async def test_loading_does_not_block_the_event_loop(
    tmp_path: Path, mounted: Path, no_blocking_calls: None
) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)}
    credentials = await load(environ=environ, service_account=mounted)
    await credentials.refresh()


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    clocks, token = Clocks(), tmp_path / "token"
    token.write_text("one")
    credentials = clocks.credentials(token_file=str(token))
    first = await credentials.refresh()
    token.write_text("  two\n")
    clocks.pass_s(59)
    assert credentials.fresh() is first
    clocks.pass_s(2)
    assert credentials.fresh() is None
    assert (await credentials.refresh()).headers["Authorization"] == "Bearer two"


async def test_an_unchanged_token_keeps_the_same_authorization(tmp_path: Path) -> None:
    clocks, token = Clocks(), tmp_path / "token"
    token.write_text("one")
    credentials = clocks.credentials(token_file=str(token))
    first = await credentials.refresh()
    clocks.pass_s(120)
    assert await credentials.refresh() is first
    clocks.pass_s(5)
    assert await credentials.renew(first) is None


async def test_a_token_file_that_vanishes_leaves_the_old_token_in_use(tmp_path: Path) -> None:
    clocks, token = Clocks(), tmp_path / "token"
    token.write_text("one")
    credentials = clocks.credentials(token_file=str(token))
    first = await credentials.refresh()
    token.unlink()
    clocks.pass_s(61)
    assert await credentials.refresh() is first
    token.write_text("two")
    clocks.pass_s(1.5)
    assert (await credentials.refresh()).headers["Authorization"] == "Bearer two"


async def test_a_token_file_that_never_was_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="token: cannot be read"):
        await Clocks().credentials(token_file=str(tmp_path / "token")).refresh()


async def test_a_client_refused_late_gets_the_token_that_another_has_renewed(
    tmp_path: Path,
) -> None:
    clocks, token = Clocks(), tmp_path / "token"
    token.write_text("one")
    credentials = clocks.credentials(token_file=str(token))
    old = await credentials.refresh()
    token.write_text("two")
    clocks.pass_s(5)
    new = await credentials.renew(old)
    assert new is not None
    assert await credentials.renew(old) is new
    assert await credentials.renew(new) is None  # Within the pause: not read again.


async def test_a_bad_ca_or_client_certificate_names_its_field() -> None:
    https = {"server": "https://127.0.0.1:1"}
    with pytest.raises(CredentialsError, match="certificate-authority: is no PEM"):
        await Clocks().credentials(**https, ca_pem=b"junk").refresh()
    with pytest.raises(CredentialsError, match="client-certificate, client-key: cannot be used"):
        await Clocks().credentials(**https, certificate_pem=b"junk", key_pem=b"junk").refresh()


@pytest.mark.parametrize("token", ["one\r\nX-Evil: yes", "one\ntwo", "tab\there"])
async def test_a_token_of_several_lines_is_refused(tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(CredentialsError, match="Authorization: must be one printable line"):
        await Clocks().credentials(token_file=str(tmp_path / "token")).refresh()


async def test_verification_is_switched_off_only_on_request() -> None:
    https = {"server": "https://127.0.0.1:1"}
    lax = (await Clocks().credentials(**https, insecure=True).refresh()).tls
    strict = (await Clocks().credentials(**https).refresh()).tls
    assert lax is not None
    assert strict is not None
    assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_NONE, False)
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.slow
async def test_a_plugin_is_run_again_before_its_token_expires(tmp_path: Path) -> None:
    clocks = Clocks()
    # That is 1,000 s from the start of the test's clock.
    body = "status = {'token': f't{count}', 'expirationTimestamp': '1970-01-12T14:03:20Z'}"
    section = plugin(tmp_path, body)
    credentials = clocks.credentials(exec_plugin=section)
    first = await credentials.refresh()
    assert first.headers["Authorization"] == "Bearer t1"
    clocks.pass_s(960)
    assert credentials.fresh() is first
    clocks.pass_s(15)
    assert (await credentials.refresh()).headers["Authorization"] == "Bearer t2"
    assert runs(tmp_path) == 2


@pytest.mark.slow
async def test_a_plugin_that_fails_keeps_its_token_until_that_expires(tmp_path: Path) -> None:
    clocks = Clocks()
    body = (
        "if count > 1: sys.exit('login is down')\n"
        "status = {'token': 't', 'expirationTimestamp': '1970-01-12T14:03:20Z'}"
    )
    credentials = clocks.credentials(exec_plugin=plugin(tmp_path, body))
    first = await credentials.refresh()
    clocks.pass_s(980)
    assert await credentials.refresh() is first
    clocks.pass_s(30)
    with pytest.raises(CredentialsError, match="login is down"):
        await credentials.refresh()


@pytest.mark.slow
async def test_a_plugins_client_certificate_is_shown(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("jane")
    certificate = issued.cert_chain_pems[0].bytes().decode()
    key = issued.private_key_pem.bytes().decode()
    status = json.dumps({"clientCertificateData": certificate, "clientKeyData": key})
    section = plugin(tmp_path, f"status = {status}")
    clocks = Clocks()
    credentials = clocks.credentials(exec_plugin=section, server="https://127.0.0.1:1")
    first = await credentials.refresh()
    assert first.tls is not None
    assert "Authorization" not in first.headers
    assert await credentials.renew(first) is None  # Too soon.
    clocks.pass_s(11)
    assert await credentials.renew(first) is None  # The same certificate again.
    assert runs(tmp_path) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("status = {}", "neither a token nor a client certificate"),
        ("status = {'clientKeyData': 'x'}", "must be given together"),
        ("print('hello'); status = {'token': 't'}", "failed to decode process output"),
    ],
)
async def test_a_plugin_that_gives_nothing_usable_is_refused(
    tmp_path: Path, body: str, message: str
) -> None:
    file = write_kubeconfig(tmp_path / "config", exec=plugin(tmp_path, body))
    with pytest.raises(CredentialsError, match=message) as error:
        await load(str(file))
    assert str(file) in str(error.value)


@pytest.mark.slow
async def test_an_auth_provider_is_asked_by_the_library(tmp_path: Path) -> None:
    # An OIDC token that has not expired is used as it is: header and claims of a JWT, unsigned.
    parts = [{"alg": "none"}, {"exp": 4102444800}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    token = ".".join(part.rstrip("=") for part in encoded)
    provider = {"name": "oidc", "config": {"id-token": f"{token}.x"}}
    file = write_kubeconfig(tmp_path / "config", **{"auth-provider": provider})
    credentials = await load(str(file))
    now = credentials.fresh()
    assert now is not None
    assert now.headers["Authorization"] == f"Bearer {token}.x"
    unknown = write_kubeconfig(tmp_path / "other", **{"auth-provider": {"name": "magic"}})
    with pytest.raises(CredentialsError, match="auth-provider"):
        await load(str(unknown))
