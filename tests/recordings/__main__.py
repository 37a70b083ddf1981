"""`python -m tests.recordings`: take the tapes again, from the planner as it is now.

python -m tests.recordings seeds 1 24          # simulation
python -m tests.recordings worlds              # worlds of bench.planner, smaller
python -m tests.recordings segment NAME FILE   # a standby's recording, such as of a live drain
python -m tests.recordings again               # verdicts only: decisions and notes must be the same
"""

import sys
from pathlib import Path

from bench.planner import evicting
from bench.planner.world import HOSTNAME, RACK, ZONE, World, make_gang, make_nodes, make_storage
from bench.planner.world import shape_of as make_shape
from services.gang_planner.recorder import read_segment
from services.gang_planner.replay.reproduction import reproduce
from shared.contracts.cluster import Gone, PodChanges
from shared.model.objects import NetworkTopology
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint
from tests.recordings.tape import Tape, play, read_tapes, taken_again, taping, write_tapes
from tests.simulation.patches import run_with_fixed_hashes

FOLDER = Path(__file__).with_name("tapes")
_APP = Selector(requirements=(Requirement(key="app", operator="In", values=("x",)),))
_LABELS = b"\x91\x92\xa3app\xa1x"


def keep(name: str, tapes: list[Tape]) -> None:
    """Write those of the tapes on which something was decided."""
    kept = [tape for tape in tapes if any(call.decisions or call.notes for call in tape.calls)]
    for tape in kept:
        assert play(tape), "a tape that does not replay on the planner that it is from"
    write_tapes(kept, FOLDER / f"{name}.tapes.xz")


def take_seeds(first: int, last: int) -> None:
    """Tape each planner's life in these seeds of the simulation."""
    from tests.simulation.running import Options, run

    for seed in range(first, last + 1):
        with taping() as tapes:
            violations = run(Options(seed=seed)).violations
        if violations:
            raise SystemExit(f"seed {seed} breaks a promise: {violations[0]}")
        keep(f"seed-{seed:03d}", tapes)


def take_worlds() -> None:
    """Tape the worlds of `bench.planner`, on fewer nodes."""
    within = NetworkTopology(mode="hard", label_key=RACK, highest_tier=1)
    for shapes in (1, 2, 3):
        kinds = [make_shape(500 + 100 * index) for index in range(shapes)]
        for topology in (None, within):
            with taping() as tapes:
                world = World(make_nodes(200))
                for size in (3, 100):
                    world.put_gangs(
                        make_gang(f"job-{size}-{at:03d}", size, kinds, topology=topology)
                        for at in range(600 // size)
                    )
                world.decide()
            keep(f"placement-{shapes}-{'rack' if topology else 'anywhere'}", tapes)
    with taping() as tapes:
        world = World(make_nodes(100))
        make_storage(world, 60)
        claims = [make_shape(500, namespace="team", claims=(f"data-{at}",)) for at in range(60)]
        world.put_gangs([make_gang("job", 60, claims)])
        world.decide()
    keep("claims", tapes)
    host, zone = (
        PodTerm(selector=_APP, namespaces=("team",), topology_key=key) for key in (HOSTNAME, ZONE)
    )
    for name, fields in (
        ("anti-affinity", {"pod_affinity": PodAffinity(anti_affinity=(host,))}),
        ("affinity", {"pod_affinity": PodAffinity(affinity=(zone,))}),
        ("spread", {"spread": (SpreadConstraint(max_skew=1, topology_key=ZONE, selector=_APP),)}),
    ):
        with taping() as tapes:
            world = World(make_nodes(200))
            shape = make_shape(500, namespace="team", **fields)
            world.put_gangs(
                make_gang(f"job-{at:03d}", 20, [shape], created_ms=at, labels=_LABELS)
                for at in range(8)
            )
            world.decide()
        keep(f"terms-{name}", tapes)
    with taping() as tapes:
        world = World(make_nodes(100, cpu_milli=1_000, pods=10))
        world.put_gangs(
            make_gang(f"old-{at}", 1, [make_shape(1_000)], nodes=[f"node-{at:05d}"])
            for at in range(100)
        )
        world.put_gangs(
            make_gang(f"new-{at:03d}", 8, [make_shape(600 + at % 20)], created_ms=at)
            for at in range(100)
        )
        world.decide()
        for at in range(20):
            gone = Gone(uid=f"old-{at}-0", resource_version=101)
            world.apply(PodChanges(epoch=1, at_ms=10_000, removed=(gone,)))
            world.decide()
    keep("full", tapes)
    with taping() as tapes:
        list(evicting.evicting(runs=1))
    keep("evictions", tapes)


def take_segment(name: str, path: Path) -> None:
    """Tape the replay of a standby's recording."""
    with taping() as tapes:
        report = reproduce(read_segment(path))
    if report.differences:
        raise SystemExit(f"{path} does not replay: {report.differences[0]}")
    keep(name, tapes)


def take_verdicts() -> None:
    """Play all tapes, and write what the planner returns now."""
    for path in sorted(FOLDER.glob("*.tapes.xz")):
        write_tapes([taken_again(tape) for tape in read_tapes(path)], path)


def main(arguments: list[str]) -> None:
    """Take what the arguments name."""
    run_with_fixed_hashes()
    FOLDER.mkdir(exist_ok=True)
    match arguments:
        case ["seeds", first, last]:
            take_seeds(int(first), int(last))
        case ["worlds"]:
            take_worlds()
        case ["segment", name, path]:
            take_segment(name, Path(path))
        case ["again"]:
            take_verdicts()
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
