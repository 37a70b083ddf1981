"""ResourceClaims of pods: the devices that they get, chosen by the planner.

Input: the tables of device classes, slices and claims (`reference_objects`), and every pod that
takes or releases capacity (`ledger`, part of a `NodeCapacity`). Output: node masks for the filter,
and the devices of each claim for the decision.

| module | content |
| --- | --- |
| `selection` | which devices a request may get, by driver and CEL selectors |
| `selector_limits` | how many selectors of a namespace's users are in force |
| `capacity` | what a request consumes of a device's capacities |
| `device_table` | devices and shared counters, as slices publish them, and where they can be used |
| `inventory` | devices by node and requirement, and which of them claims in the cluster have |
| `extended` | the classes of extended resources |
| `demand` | the needs of a shape's claims |
| `plain_devices` | problems that only numbers of devices decide, counted for all nodes at once |
| `allocation_search` | the use of one node's devices, and devices of it for several claims |
| `grants` | the claims in use, the devices chosen for them, and the life of a choice |
| `vacated` | claims that lose their devices when pods leave |
| `searches` | nodes on which a problem has a solution |
| `ledger` | which nodes may take another pod, and what it takes there |
| `shortage` | why a node may not |
"""
