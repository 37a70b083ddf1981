import subprocess
import sys

import pytest

from bench.meters import QUIET_SAMPLES, SuiteMeter, is_quiet, role_of

BUSY_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", '''
import time
while time.process_time() < 0.3: pass
print("done", flush=True)
time.sleep(60)
'''])
child.wait()
"""


@pytest.mark.parametrize(
    ("name", "command", "role"),
    [
        pytest.param(
            "binder-0", ["python", "-m", "tutti.up.fork_server", "4"], "binder", id="forked service"
        ),
        pytest.param(
            "gang-planner-1", ["python", "-m", "tutti.up.fork_server"], "gang-planner", id="replica"
        ),
        pytest.param(
            "python", ["python", "-P", "-m", "tutti.up.fork_server", "4"], "fork-server", id="fork"
        ),
        pytest.param(
            "python3.11", ["python3", "-m", "services.gang_planner"], "gang-planner", id="by hand"
        ),
        pytest.param("nats-server", ["bin/nats-server", "-c", "x"], "nats-server", id="nats"),
        pytest.param(
            "python", ["python", "-I", "-S", "deathsig.py", "1", "tutti"], "starting", id="wrapper"
        ),
        pytest.param("python", ["python", "x.py"], "python", id="another program"),
    ],
)
def test_a_process_is_named_by_what_it_is_for(name: str, command: list[str], role: str) -> None:
    assert role_of(name, command) == role


def test_quiet_is_several_samples_with_next_to_no_work() -> None:
    still = [(float(at), 5.0) for at in range(QUIET_SAMPLES + 1)]
    assert is_quiet(still)
    assert not is_quiet(still[1:]), "too few samples to judge"
    assert not is_quiet([*still[1:], (still[-1][0] + 1, 5.5)])
    # What was busy before has come to rest.
    assert is_quiet([(-2.0, 1.0), (-1.0, 4.0), *still])


@pytest.mark.slow
def test_cpu_and_memory_of_children_are_counted_from_their_start_and_kept_after_their_end() -> None:
    root = subprocess.Popen([sys.executable, "-c", BUSY_CHILD], stdout=subprocess.PIPE, text=True)
    try:
        assert root.stdout is not None
        assert root.stdout.readline() == "done\n"
        meter = SuiteMeter(root.pid)
        assert meter.sample() >= 0.3
        costs = meter.costs()
        assert len(costs) == 2
        assert costs[0].pid == root.pid
        assert all(cost.peak_bytes > 2**20 for cost in costs)
        (child,) = (cost.pid for cost in costs[1:])
        subprocess.run(["kill", str(child)], check=True)
        root.wait(10)
        assert meter.sample() >= 0.3
        assert len(meter.costs()) == 2
    finally:
        root.kill()
        root.wait()
        if root.stdout is not None:
            root.stdout.close()
