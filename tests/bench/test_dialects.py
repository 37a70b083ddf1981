"""The drains of each gang API: the same gangs in all, and ratios within a round."""

import pytest

from bench.dialects import rows
from bench.gang_apis import GangApi
from bench.load import Load, pod, pod_group
from shared.explanation.understanding import understand
from tests.bench.sessions import drain_run


@pytest.mark.parametrize("api", GangApi)
def test_a_load_is_the_same_gang_in_every_api(api: GangApi) -> None:
    load = Load(gangs=1, size=2, api=api)
    objects = [pod_group(load, "run1", 0), *(pod(load, "run1", 0, n, "volcano") for n in range(2))]
    documents = [(f"document {number}", one) for number, one in enumerate(objects)]
    found = understand(documents, namespace="bench", scheduler_names=("volcano",))
    (gang,) = found.gangs
    assert gang.minimum == gang.members == 2
    assert load.groups_path == f"/apis/{objects[0]['apiVersion']}/namespaces/bench/podgroups"


def test_ratios_are_those_of_drains_of_the_same_round() -> None:
    rates = {
        GangApi.VOLCANO: (800.0, 400.0, 600.0),
        GangApi.KUBERNETES: (720.0, 400.0, 630.0),
    }
    found = {api: [drain_run(rate=rate) for rate in of_api] for api, of_api in rates.items()}
    volcano, kubernetes = rows(found)
    assert volcano.rate_ratios == (1.0, 1.0, 1.0)
    assert kubernetes.rate_ratios == (0.9, 1.0, 1.05)
    assert kubernetes.rate_ratio == 1.0
    assert kubernetes.rate == 630.0
    assert kubernetes.writes_while_binding == 2
