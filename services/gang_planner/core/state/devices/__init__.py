"""ResourceClaims of pods: the devices that they get, chosen by the planner.

Input: the tables of device classes, slices and claims (`reference_objects`), and every pod that
takes or releases capacity (`ledger`, part of a `NodeCapacity`). Output: node masks for the filter,
and the devices of each claim for the decision.

| module | content |
| --- | --- |
| `namespace_cache` | results for selectors, of which each namespace has a bounded part |
| `selection` | which devices a request may get, by driver and CEL selectors |
| `capacity` | what a request consumes of a device's capacities |
| `device_table` | devices and shared counters, as slices publish them |
| `inventory` | devices by node and requirement, and which of them claims in the cluster have |
| `demand`, `demands` | the needs of a shape's claims |
| `plain_devices` | problems that only numbers of devices decide, counted for all nodes at once |
| `constraints`, `assignment`, `allocation_search` | devices of one node for several claims |
| `grants` | devices chosen for a claim, and when they no longer count |
| `node_devices`, `reach` | devices chosen for claims, and where these can be used |
| `vacated` | claims that lose their devices when pods leave |
| `masks` | nodes on which a problem has a solution |
| `ledger` | claims in use by pods, and the nodes that may take another pod |
| `shortage` | why a node may not |
"""
