"""A Job plugin is one file: the controller runs it, and the webhook accepts its name."""

from tests.extension_points.product_copy import ProductCopy

PLUGIN = '''"""Plugin greeting: gives each container a variable with the plugin's first argument."""

from collections.abc import Sequence
from typing import Final

from shared.job_plugins.plugin import Changeless, JobPlugin, Manifest, add_env, containers
from shared.kinds.job import Job, TaskSpec

NEEDS: Final = ("svc",)


def build(arguments: Sequence[str], _job: Job) -> JobPlugin:
    """Its only argument is the text."""
    return _Greeting(arguments[0])


class _Greeting(Changeless):
    def __init__(self, text: str) -> None:
        self._text = text

    def change_pod(self, pod: Manifest, _task: TaskSpec, _index: int) -> None:
        for container in containers(pod, init=False):
            add_env(container, {"name": "GREETING", "value": self._text})
'''
USE = """
import msgspec
from shared.admission.jobs.validation import plugin_errors
from shared.admission.suggestions import Hints
from services.controller.core.jobs.manifests import pod_for
from shared.job_plugins.discovery import plugins_of, with_needed_plugins
from shared.kinds.job import Job

template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
task = {"name": "worker", "replicas": 1, "template": template}
spec = {"plugins": {"greeting": ["hello"]}, "tasks": [task]}
metadata = {"name": "a", "namespace": "team", "uid": "u"}
job = with_needed_plugins(msgspec.convert({"metadata": metadata, "spec": spec}, Job))
pod = pod_for(job, job.spec.tasks[0], 0, plugins_of(job))
values = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
print(values["GREETING"], sorted(job.spec.plugins), list(plugin_errors(spec, Hints())))
"""


def test_a_job_plugin_is_one_file(product: ProductCopy) -> None:
    product.add("shared/job_plugins/greeting.py", PLUGIN)
    assert product.run("-c", USE).strip() == "hello ['greeting', 'svc'] []"
