"""What a test acts through: one namespace of one cluster on which the suite runs, and the audit."""

import asyncio
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.contracts import annotations
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import NodeShape, create_nodes, create_pods, pod_manifest
from tests.integration.auditor import Auditor
from tests.integration.suite import RunningSuite
from tests.support.waiting import eventually

VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
INCUBATOR: Final = "scheduling.incubator.k8s.io/v1alpha1"
SIGS: Final = "scheduling.sigs.dev/v1alpha2"
SEEN_S: Final = 20.0
#: Conditions on pods come after 2 s of waiting; what has not happened by then will not.
QUIET_S: Final = 2.0


@dataclass(frozen=True)
class Stage:
    """One test's view of the cluster."""

    api: RawClient
    namespace: str
    suite: RunningSuite
    audit: Auditor
    control_plane: ControlPlane
    kubelet: FakeKubelet

    async def nodes(self, count: int, prefix: str = "node-", **shape: Any) -> list[str]:
        """Make Ready nodes; 4 CPUs and 16 GiB each by default."""
        return await create_nodes(self.api, count, NodeShape(**shape), prefix=prefix)

    async def group(
        self,
        name: str,
        min_member: int,
        *,
        version: str = VOLCANO,
        spec: Mapping[str, object] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Object:
        """Make a PodGroup of any dialect."""
        manifest = {
            "apiVersion": version,
            "kind": "PodGroup",
            "metadata": {"name": name, "annotations": dict(notes or {})},
            "spec": {"minMember": min_member, **(spec or {})},
        }
        return await self.api.create(self.group_path("", version), manifest)

    async def members(
        self,
        gang: str,
        count: int,
        *,
        prefix: str = "",
        requests: Mapping[str, str] | None = None,
        role: str = "",
        scheduler_name: str = "tutti",
        labels: Mapping[str, str] | None = None,
        spec: Mapping[str, object] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> list[Object]:
        """Make pods that name a group; a CPU each by default."""
        named = {annotations.GROUP_NAME: gang, **(notes or {})}
        if role:
            named[annotations.TASK_SPEC] = role
        stem = prefix or (f"{gang}-{role}" if role else gang)
        manifests = [
            pod_manifest(
                f"{stem}-{index}",
                requests=requests if requests is not None else {"cpu": "1"},
                scheduler_name=scheduler_name,
                labels=labels,
                annotations=named,
                spec=spec,
            )
            for index in range(count)
        ]
        return await create_pods(self.api, self.namespace, manifests)

    async def gang(self, name: str, count: int, **members: Any) -> list[Object]:
        """Make a group of as many members as it needs, and these."""
        await self.group(name, count)
        return await self.members(name, count, **members)

    async def bare_pods(self, *manifests: Object) -> list[Object]:
        """Make pods as they are given."""
        return await create_pods(self.api, self.namespace, manifests)

    async def tried(self, manifest: Object) -> str:
        """The warnings of `kubectl create --dry-run=server`, which it prints on its standard
        error.
        """
        return await self.created(manifest, "--dry-run=server")

    async def created(self, manifest: Object, *options: str) -> str:
        """The warnings of `kubectl create`."""
        command = [str(self.control_plane.binaries.kubectl)]
        command += [f"--kubeconfig={self.control_plane.admin_kubeconfig}", "create"]
        command += [*options, f"--namespace={self.namespace}", "-f", "-"]
        done = await asyncio.to_thread(
            subprocess.run,
            command,
            input=json.dumps(manifest),
            env={"HOME": str(self.control_plane.dir), "PATH": ""},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def path(self, kind: str = "pods", name: str = "", version: str = "v1") -> str:
        """Path of a namespaced collection, or of one object in it."""
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{root}/namespaces/{self.namespace}/{kind}{f'/{name}' if name else ''}"

    def group_path(self, name: str, version: str = VOLCANO) -> str:
        """Path of a PodGroup."""
        return self.path("podgroups", name, version)

    async def seen_group(self, name: str, version: str = VOLCANO) -> Object:
        """A PodGroup. Raises AssertionError where there is none (yet): for probes."""
        try:
            return await self.api.get(self.group_path(name, version))
        except ApiError as error:
            if error.status != 404:
                raise
            raise AssertionError(f"there is no group {name}") from None

    async def pods(self, gang: str = "") -> list[Object]:
        """The namespace's pods, or those that name a gang."""
        listed = await self.api.get(self.path())
        return [
            pod
            for pod in listed["items"]
            if gang in ("", pod["metadata"].get("annotations", {}).get(annotations.GROUP_NAME))
        ]

    async def placed(self, gang: str = "") -> dict[str, str]:
        """Node by name of the pods that have one."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in await self.pods(gang)
            if pod["spec"].get("nodeName")
        }

    async def bound(self, gang: str, count: int, *, timeout_s: float = SEEN_S) -> dict[str, str]:
        """Wait until so many of a gang, and no more, are on nodes: node by pod."""

        async def all_placed() -> dict[str, str]:
            placed = await self.placed(gang)
            assert len(placed) == count, f"{len(placed)} of {gang} are bound"
            return placed

        return await eventually(all_placed, timeout_s=timeout_s, because=f"{gang} is bound")

    async def waits(
        self, gang: str, reason: str, words: str = "", *, version: str = VOLCANO
    ) -> str:
        """Wait until its group says that it waits for this reason, in these words: the condition's
        message. Counts in it follow within a second.
        """

        async def reported() -> str:
            found = await self.seen_group(gang, version)
            conditions = found.get("status", {}).get("conditions", ())
            conditions = [one for one in conditions if one["type"] == "Unschedulable"]
            assert conditions, f"no condition: {found.get('status')}"
            assert (conditions[0]["status"], conditions[0]["reason"]) == ("True", reason), (
                conditions
            )
            assert words in conditions[0]["message"], conditions
            return str(conditions[0]["message"])

        return await eventually(reported, timeout_s=SEEN_S, because=f"{gang} waits: {reason}")

    async def pods_say(
        self, gang: str, count: int, *, reason: str = "", words: str = ""
    ) -> list[Object]:
        """Wait until so many of a gang's pods say PodScheduled=False, all of them for this reason
        and in these words: the conditions.
        """

        async def reported() -> list[Object]:
            found = [
                condition
                for pod in await self.pods(gang)
                for condition in pod["status"].get("conditions", ())
                if condition["type"] == "PodScheduled" and condition["status"] == "False"
            ]
            assert len(found) == count, f"{len(found)} of {count} say it"
            for condition in found:
                assert reason in {"", condition["reason"]}, found
                assert words in condition["message"], found
            return found

        return await eventually(reported, timeout_s=SEEN_S, because=f"all of {gang} say it")

    async def stays_unbound(self, gang: str, *, for_s: float = QUIET_S) -> None:
        """Nothing of a gang is bound for this long. It passes by waiting: there is no
        event for what does not happen.
        """
        await asyncio.sleep(for_s)
        assert not await self.placed(gang)

    async def why(self, what: str, *words: str) -> str:
        """Wait until `tutti why` says all of these words."""

        async def reported() -> str:
            text = await self.suite.why(what, self.namespace)
            assert all(word in text for word in words), text
            return text

        return await eventually(reported, timeout_s=SEEN_S, because=f"why says {words}")

    async def delete(self, path: str, *, grace_s: int = 0) -> None:
        """Delete an object at once; one that is gone already is fine."""
        try:
            await self.api.delete(path, {"gracePeriodSeconds": grace_s})
        except ApiError as error:
            if error.status != 404:
                raise

    async def delete_pods(self, names: Sequence[str]) -> None:
        """Delete pods at once."""
        for name in names:
            await self.delete(self.path(name=name))
