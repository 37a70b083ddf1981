"""Our commands and the real kubectl, side by side on the real control plane."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
import yaml

from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.integration

SCRIPTS = Path(sysconfig.get_path("scripts"))
MANIFEST = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: NAME, labels: {team: TEAM}}
spec:
  minAvailable: 2
  schedulerName: volcano
  plugins: {svc: [--disable-network-policy=true], env: []}
  tasks:
  - name: worker
    replicas: 2
    template:
      metadata: {annotations: {a.example/kept: "1"}}
      spec:
        restartPolicy: Never
        containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]
"""


@pytest.fixture
def typed(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> "Typed":
    return Typed(control_plane, namespace, tmp_path)


class Typed:
    """Types commands as a user does with our scripts and kubectl on PATH."""

    def __init__(self, control_plane: ControlPlane, namespace: str, home: Path) -> None:
        kubectl = home / "bin" / "kubectl"
        kubectl.parent.mkdir()
        kubectl.symlink_to(control_plane.binaries.kubectl)
        self._environ = {
            "HOME": str(home),
            "KUBECONFIG": str(control_plane.admin_kubeconfig),
            "PATH": os.pathsep.join([str(kubectl.parent), str(SCRIPTS), os.environ["PATH"]]),
        }
        self.namespace = namespace
        #: Standard error of the last command.
        self.reported = ""

    def __call__(self, *words: str, stdin: str = "") -> str:
        program = shutil.which(words[0], path=self._environ["PATH"])
        assert program is not None, words[0]
        done = subprocess.run(
            [program, *words[1:]], input=stdin, env=self._environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.reported = done.stderr
        return done.stdout


def test_the_same_objects_come_out_whichever_command_put_them_in(typed: Typed) -> None:
    here = ("-n", typed.namespace)
    ours = MANIFEST.replace("NAME", "ours").replace("TEAM", "red")
    theirs = MANIFEST.replace("NAME", "theirs").replace("TEAM", "blue")
    typed("vcctl", "job", "run", "-f", "-", *here, stdin=ours)
    typed("kubectl", "create", "-f", "-", *here, stdin=theirs)
    for flags in ([], ["-l", "team=red"], ["-l", "team in (blue)"], ["-l", "team!=blue"]):
        expected = typed("kubectl", "get", "vcjob", "-o", "name", *flags, *here)
        assert typed("kubectl", "tutti", "job", "list", "-o", "name", *flags, *here) == expected
    for name in ("ours", "theirs"):
        expected = yaml.safe_load(typed("kubectl", "get", "vcjob", name, "-o", "yaml", *here))
        found = yaml.safe_load(typed("tutti", "job", "view", name, "-o", "yaml", *here))
        assert found == expected
    spec = yaml.safe_load(typed("tutti", "job", "view", "ours", "-o", "json", *here))["spec"]
    given = yaml.safe_load(ours)["spec"]
    assert spec["plugins"] == given["plugins"]
    assert spec["tasks"][0]["template"] == given["tasks"][0]["template"]


def test_a_dry_run_stores_nothing_and_warnings_are_printed_as_kubectl_prints_them(
    typed: Typed,
) -> None:
    here = ("-n", typed.namespace)
    odd = MANIFEST.replace("NAME", "odd").replace("TEAM", "red") + "  nonsense: 1\n"
    # `tutti` refuses such a field, as kubectl does; Volcano's program drops it.
    said = typed("vcctl", "job", "run", "--dry-run", "-f", "-", *here, stdin=odd)
    assert said == "run job odd successfully (server dry run)\n"
    assert 'Warning: unknown field "spec.nonsense"' in typed.reported
    assert typed("vjobs", "-N", typed.namespace) == "No resources found\n"


def test_a_suspended_jobs_command_goes_with_its_job(typed: Typed) -> None:
    here = ("-n", typed.namespace)
    typed("vsub", "-n", "train", "-N", typed.namespace)
    typed("vsuspend", "-n", "train", "-N", typed.namespace)
    (command,) = yaml.safe_load(typed("kubectl", "get", "commands", "-o", "yaml", *here))["items"]
    job = yaml.safe_load(typed("kubectl", "get", "vcjob", "train", "-o", "yaml", *here))
    assert command["action"] == "AbortJob"
    assert command["target"]["uid"] == job["metadata"]["uid"]
    assert command["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    typed("vcancel", "-n", "train", "-N", typed.namespace)
    assert typed("vjobs", "-N", typed.namespace) == "No resources found\n"


def test_kubectl_completes_the_plugins_commands(typed: Typed) -> None:
    reported = typed("kubectl", "__complete", "tutti", "job", "sus").splitlines()
    assert reported[0].startswith("suspend\t")
    assert reported[-1] == ":4"
