"""kube-batch's canonical example: a batch Job of six pods that are bound together or not at all."""

from tests.controlplane.nodes import NodeShape, create_nodes
from tests.seeds.playing import SEEN_S, Play
from tests.support.waiting import eventually


async def test_the_six_pods_wait_for_room_for_all_and_then_run_together(play: Play) -> None:
    await create_nodes(play.api, 1, NodeShape(cpu_milli=4000, memory_bytes=16 * 2**30))
    play.apply("kube-batch-job.yaml")

    async def all_wait() -> bool:
        pods = await play.pods("job-name=qj-1")
        assert len(pods) == 6
        reasons = {
            condition["reason"]
            for pod in pods.values()
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled"
        }
        assert reasons == {"Unschedulable"}, reasons
        return True

    await eventually(all_wait, timeout_s=SEEN_S)
    pods = await play.pods("job-name=qj-1")
    assert not [name for name, pod in pods.items() if pod["spec"].get("nodeName")]
    await create_nodes(
        play.api, 1, NodeShape(cpu_milli=4000, memory_bytes=16 * 2**30), prefix="more-"
    )
    await play.running(6, "job-name=qj-1")
    await play.finish(*pods)

    async def complete() -> bool:
        return bool(play.get("job.batch/qj-1")["status"].get("succeeded") == 6)

    await eventually(complete, timeout_s=SEEN_S)
