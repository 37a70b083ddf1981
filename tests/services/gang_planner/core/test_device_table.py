"""A table of devices that takes over what an earlier one read equals one that reads everything."""

import random
from typing import Any

import msgspec

from services.gang_planner.core.state.devices.device_table import DeviceTable
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.devices import (
    Counters,
    DeviceDetails,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
)
from tests.services.gang_planner.core.claims import make_slice


def content(table: DeviceTable) -> list[Any]:
    """Everything of the table that can be compared."""
    fields = ("id", "details", "taints", "node", "reach", "rules", "consumes", "wide")
    return [
        [[getattr(one, name) for name in fields] for one in table.ordered],
        list(table.entries) == [one.id for one in table.ordered],
        table.counters,
        {pool: [one.id for one in found] for pool, found in table.consumers.items()},
        table.unsettled_on,
        table.unsettled_wide,
        table.conditional,
    ]


def read(tables: ReferenceObjects, earlier: DeviceTable | None = None) -> DeviceTable:
    return DeviceTable(tables.resource_slices, tables.device_taint_rules, earlier)


def some_slice(chance: random.Random, pool: str) -> ResourceSlice:
    """With any number of devices, a generation, counters that may not suffice or exist."""
    names = [f"gpu-{index}" for index in range(chance.randint(0, 12))]
    consumes = (Counters(counter_set="set", amounts=(("memory", "1Gi"),)),)
    detailed = tuple(
        DeviceDetails(
            capacity=(("memory", chance.choice(["80Gi", "40Gi", "no quantity"])),),
            consumes=chance.choice([(), consumes]),
        )
        for _ in names
    )
    counted = (Counters(counter_set="set", amounts=(("memory", "8Gi"),)),)
    return make_slice(
        pool,
        0,
        names=tuple(chance.sample(names, len(names))),
        generation=chance.randint(1, 3),
        pool_slices=chance.choice([1, 1, 1, 2]),
        details=detailed,
        shared_counters=chance.choice([counted, counted, ()]),
    )


def test_a_table_equals_one_that_reads_everything() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        tables = ReferenceObjects()
        table = read(tables)
        for _ in range(30):
            pool = f"n{chance.randrange(5)}"
            if chance.random() < 0.1:
                taint = DeviceTaint(key="broken", effect="NoSchedule")
                rule = DeviceTaintRule(
                    uid="rule", name="rule", resource_version=1, pool=pool, taint=taint
                )
                if chance.random() < 0.5:
                    tables.put(rule, from_snapshot=False)
                else:
                    tables.remove(rule.uid)
            else:
                tables.put(some_slice(chance, pool), from_snapshot=False)
            table = read(tables, table)
            assert content(table) == content(read(tables))


def test_only_the_pool_of_a_changed_slice_is_read_again() -> None:
    tables = ReferenceObjects()
    first, second = make_slice("n1", 8), make_slice("n2", 8)
    tables.put(first, from_snapshot=False)
    tables.put(second, from_snapshot=False)
    before = read(tables)
    tables.put(msgspec.structs.replace(second, devices=("gpu-0",)), from_snapshot=False)
    after = read(tables, before)
    assert [one.id[1] for one in after.ordered] == ["n1"] * 8 + ["n2"]
    assert after.ordered[:8] == before.ordered[:8]
    assert after.ordered[8] is not before.ordered[8]
