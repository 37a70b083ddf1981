"""PodGroups of other APIs than kube-batch's and Volcano's, typed as in `shared.kube.objects`."""

from typing import TypeAlias

from shared.kube.objects import Conditions, Int32, KubeObject, KubeStruct, Present, ResourceList


class Gang(KubeStruct, frozen=True, kw_only=True):
    """`min_count` pods, or `min_group_count` groups."""

    min_count: Int32 = 0
    min_group_count: Int32 = 0


class SchedulingPolicy(KubeStruct, frozen=True, kw_only=True):
    """`spec.schedulingPolicy`: exactly one of them, as far as it is known here."""

    basic: Present | None = None
    gang: Gang | None = None


class TopologyKey(KubeStruct, frozen=True, kw_only=True):
    key: str = ""


class SchedulingConstraints(KubeStruct, frozen=True, kw_only=True):
    topology: tuple[TopologyKey, ...] = ()


class DisruptionMode(KubeStruct, frozen=True, kw_only=True):
    """`spec.disruptionMode` since v1alpha3."""

    single: Present | None = None
    all: Present | None = None


AnyDisruptionMode: TypeAlias = str | DisruptionMode | None
"""In v1alpha2 it is a text, "Pod" or "PodGroup"."""


class WorkloadReference(KubeStruct, frozen=True, kw_only=True):
    """`spec.workloadRef`: the templates that made the group."""

    workload_name: str = ""


class KubernetesPodGroupSpec(KubeStruct, frozen=True, kw_only=True):
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints = SchedulingConstraints()
    priority_class_name: str = ""
    #: Set at admission where the API server has priorities of groups.
    priority: Int32 | None = None
    preemption_policy: str = ""
    parent_composite_pod_group_name: str = ""
    workload_ref: WorkloadReference = WorkloadReference()
    disruption_mode: AnyDisruptionMode = None


class KubernetesPodGroup(KubeObject, frozen=True, kw_only=True):
    """PodGroup or CompositePodGroup of scheduling.k8s.io: the union of their versions."""

    spec: KubernetesPodGroupSpec = KubernetesPodGroupSpec()
    status: Conditions = Conditions()


class CoschedulingPodGroupSpec(KubeStruct, frozen=True, kw_only=True):
    min_member: Int32 = 0
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: Int32 | None = None


class CoschedulingPodGroup(KubeObject, frozen=True, kw_only=True):
    """PodGroup of scheduling.x-k8s.io."""

    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()


class KaiTopologyConstraint(KubeStruct, frozen=True, kw_only=True):
    """Levels are keys of node labels; `topology` names the object that has all of them."""

    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class KaiSubGroup(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    parent: str | None = None
    topology_constraint: KaiTopologyConstraint = KaiTopologyConstraint()


class KaiPodGroupSpec(KubeStruct, frozen=True, kw_only=True):
    min_member: Int32 | None = None
    min_sub_group: Int32 | None = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: KaiTopologyConstraint = KaiTopologyConstraint()
    sub_groups: tuple[KaiSubGroup, ...] = ()


class KaiPodGroup(KubeObject, frozen=True, kw_only=True):
    """PodGroup of scheduling.run.ai."""

    spec: KaiPodGroupSpec = KaiPodGroupSpec()


class PodReference(KubeStruct, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""


class PackConstraint(KubeStruct, frozen=True, kw_only=True):
    """Keys of node labels."""

    required: str | None = None
    preferred: str | None = None


class PodGangTopology(KubeStruct, frozen=True, kw_only=True):
    pack_constraint: PackConstraint | None = None


class PodGangGroup(KubeStruct, frozen=True, kw_only=True):
    """`spec.podgroups[]`."""

    name: str = ""
    pod_references: tuple[PodReference, ...] = ()
    min_replicas: Int32 = 0
    topology_constraint: PodGangTopology | None = None


class PodGangGroupConfig(KubeStruct, frozen=True, kw_only=True):
    """`spec.topologyConstraintGroupConfigs[]`."""

    name: str = ""
    pod_group_names: tuple[str, ...] = ()
    topology_constraint: PodGangTopology | None = None


class PodGangSpec(KubeStruct, frozen=True, kw_only=True):
    podgroups: tuple[PodGangGroup, ...] = ()
    topology_constraint: PodGangTopology | None = None
    topology_constraint_group_configs: tuple[PodGangGroupConfig, ...] = ()
    priority_class_name: str = ""


class PodGang(KubeObject, frozen=True, kw_only=True):
    """PodGang of scheduler.grove.io."""

    spec: PodGangSpec = PodGangSpec()
