"""What users and controllers of simulated gangs do when the API server forgets."""

from shared.kube.resources import PODGROUPS_VOLCANO
from tests.simulation.loop import Dice, SimLoop
from tests.simulation.workload import Plan, Shape
from tests.simulation.world import World


def test_a_group_that_a_restore_forgot_before_its_first_pod_was_made_is_made_again() -> None:
    """Seed 355: a gang without its group was never placed."""
    loop = SimLoop(Dice(1))
    world = World(loop, Shape(gangs=0), on_fault=lambda _: None, note=lambda _gang, _what: None)
    world.begin()
    plan = Plan(
        name="gang",
        arrives_ms=1_000,
        size=1,
        minimum=1,
        cpu_milli=500,
        runs_ms=500,
        group=PODGROUPS_VOLCANO,
        owner="TFJob",
    )
    world.lives.begin([plan])
    backup = world.etcd.backup()
    loop.run_until(lambda: bool(world.etcd.all(PODGROUPS_VOLCANO)), limit_s=2.0, every_s=0.0001)
    assert not world.lives.lives["gang"].made
    world.etcd.restore(backup)
    assert [one["metadata"]["name"] for one in world.etcd.all(PODGROUPS_VOLCANO)] == ["gang"]
