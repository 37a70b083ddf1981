"""`tutti up` as the chart has it: `python -m tests.rights.guarded_up up FLAGS`.

Every service has the token of its own ServiceAccount with the rights of the table, its own NATS
user, and TLS to NATS; controllers run as the two that the chart has. `tutti up` itself reads the
cluster with the given kubeconfig, and the tests connect to NATS without a user, with all rights.
"""

import asyncio
import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import msgspec

from shared.bus.authorization import public_key
from shared.bus.permissions import User, users
from tests.controlplane.client import RawClient, connection_of
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.rights.audit import NAMESPACE, RELEASE_NAME
from tests.support.rbac import account_token
from tutti import cli
from tutti.provision.stores import provision_folder
from tutti.rights.table import ACCOUNTS, Account
from tutti.rights.table import SCHEDULER_NAMES as PLACEHOLDER
from tutti.up.keys import Keys
from tutti.up.options import REPLICAS_MAX, SCHEDULER_NAMES, UpOptions
from tutti.up.plan import plan
from tutti.up.processes import ProcessSpec

_TESTS = User(name="tests", publish=(">",), subscribe=(">",))


def main(arguments: Sequence[str]) -> None:
    """Make accounts and keys, then be `tutti`."""
    given = {name: value for name, _, value in (one.partition("=") for one in arguments)}
    folder = Path(given["--data-dir"]) / "guarded"
    all_accounts = (*users(planners=REPLICAS_MAX, webhooks=REPLICAS_MAX, apis=REPLICAS_MAX), _TESTS)
    provision_folder(folder, all_accounts, ["127.0.0.1"])
    kubeconfigs = asyncio.run(_accounts(Path(given["--kubeconfig"]), folder))
    planning = functools.partial(_guarded, folder, kubeconfigs)
    with (
        patch("tutti.up.nats.keep_keys", lambda *_: (Keys(), _server_config(folder))),
        # These keys are never removed, and they are not where `tutti up` keeps its own.
        patch("tutti.up.nats.restorer", lambda _: lambda: None),
        patch("tutti.up.all_services.plan", planning),
    ):
        cli.main(args=list(arguments), prog_name="tutti")


def installed_accounts() -> tuple[Account, ...]:
    """The chart's accounts, with rights on the scheduler names that `tutti up` serves."""
    return tuple(
        msgspec.structs.replace(
            account,
            rights=tuple(
                msgspec.structs.replace(right, names=SCHEDULER_NAMES)
                if right.names == (PLACEHOLDER,)
                else right
                for right in account.rights
            ),
        )
        for account in ACCOUNTS
    )


async def _accounts(admin: Path, folder: Path) -> dict[str, Path]:
    """A kubeconfig of each account that has a token."""
    server, ca_pem = connection_of(admin)
    async with RawClient(admin) as api:
        return {
            account.name: write_kubeconfig(
                folder / f"{account.name}.kubeconfig",
                server=server,
                ca_pem=ca_pem,
                credentials=await account_token(
                    api, account.name, account.rights, namespace=NAMESPACE, release=RELEASE_NAME
                ),
                namespace=NAMESPACE,
            )
            for account in installed_accounts()
            if account.token
        }


def _server_config(folder: Path) -> str:
    at = folder / "server"
    seed = (folder / _TESTS.name / "seed").read_text()
    return (
        f'tls {{ cert_file: "{at}/tls.crt", key_file: "{at}/tls.key" }}\n'
        "allow_non_tls: true\n"
        f"no_auth_user: {public_key(seed)}\n"
        f"{(at / 'authorization.conf').read_text()}"
    )


def _guarded(
    folder: Path,
    kubeconfigs: Mapping[str, Path],
    options: UpOptions,
    *,
    nats_url: str,
    data_dir: Path,
    keys: Keys,
    podgroups: bool = True,
) -> tuple[ProcessSpec, ...]:
    """The plan of `tutti up`, with each process's account as the chart has it, and not by
    `keys`.
    """
    url = nats_url.replace("nats://", "tls://")
    planned = plan(options, nats_url=url, data_dir=data_dir, keys=keys, podgroups=podgroups)
    specs: list[ProcessSpec] = []
    for spec in planned:
        if spec.service != "controller":
            specs.append(_as(spec, spec.service, folder, kubeconfigs))
            continue
        specs.append(_as(_running(spec, "status"), "controller-status", folder, kubeconfigs))
        if podgroups:
            ordinal = spec.ordinal + options.count("controller")
            other = msgspec.structs.replace(
                _running(spec, "*,-status"),
                ordinal=ordinal,
                log=spec.log and spec.log.with_name(f"controller-{ordinal}.log"),
                flags=tuple(
                    flag.replace(f"controller-{spec.ordinal}", f"controller-{ordinal}")
                    for flag in _running(spec, "*,-status").flags
                ),
            )
            specs.append(_as(other, "controller-jobs", folder, kubeconfigs))
    return tuple(specs)


def _running(spec: ProcessSpec, controllers: str) -> ProcessSpec:
    kept = [flag for flag in spec.flags if not flag.startswith("--controllers=")]
    flags = (*kept, f"--controllers={controllers}")
    return msgspec.structs.replace(spec, flags=flags)


def _as(
    spec: ProcessSpec, account: str, folder: Path, kubeconfigs: Mapping[str, Path]
) -> ProcessSpec:
    """The process as that account and NATS user."""
    kept = [flag for flag in spec.flags if not flag.startswith(("--kubeconfig=", "--context="))]
    own = {
        "admission-webhook": (
            f"--probe-namespace={NAMESPACE}",
            f"--configuration-name={RELEASE_NAME}-admission",
            f"--owner-cluster-role={RELEASE_NAME}-admission-webhook",
        ),
        "controller-jobs": (
            f"--lease-namespace={NAMESPACE}",
            f"--controller-configmap={NAMESPACE}/{RELEASE_NAME}-controller",
            f"--queue-command-policy={RELEASE_NAME}-queue-commands",
            f"--owner-cluster-role={RELEASE_NAME}-controller-jobs",
        ),
    }
    flags = (
        *kept,
        *([f"--kubeconfig={kubeconfigs[account]}"] if account in kubeconfigs else []),
        f"--nats-user={account}",
        f"--nats-credentials={folder / account / 'seed'}",
        f"--nats-ca={folder / account / 'ca.crt'}",
        *own.get(account, ()),
    )
    return msgspec.structs.replace(spec, flags=flags)


if __name__ == "__main__":
    main(sys.argv[1:])
