"""What of a pod decides where it may run, and how its constraints are read."""

from typing import Any

import pytest

from shared.model import objects as model
from shared.model.terms import PodAffinity, PodTerm, Selector, SpreadConstraint, WeightedTerm
from tests.shared.dialects.reading import pod, shape_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def one_of(key: str, *values: str, operator: str = "In") -> model.Requirement:
    return model.Requirement(key=key, operator=operator, values=values)


def test_the_shape_holds_every_constraint_of_the_pod_itself() -> None:
    term = {
        "matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
    }
    affinity = {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [term]},
            PREFERRED: [{"weight": 7, "preference": term}],
        },
        "podAffinity": {},
    }
    shape = shape_of(
        pod(
            {
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example:5000/train",
                        "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "1500m"}},
                        "ports": [{"containerPort": 80, "hostPort": 8080}],
                    }
                ],
                "initContainers": [{"name": "copy", "image": "copy:2"}],
                "nodeSelector": {"z": "1", "gpu": "1060g1"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "affinity": affinity,
            }
        )
    )
    read = model.SelectorTerm(
        expressions=(one_of("gpu", "a"),), fields=(one_of("metadata.name", "n1"),)
    )
    assert shape == model.Shape(
        requests=(("cpu", 1500), ("nvidia.com/gpu", 1), ("pods", 1)),
        node_selector=(("gpu", "1060g1"), ("z", "1")),
        node_affinity=(read,),
        tolerations=(model.Toleration(key="gpu", operator="Exists"),),
        host_ports=(model.HostPort(port=8080),),
        preferred_node_affinity=(WeightedTerm(weight=7, term=read),),
        images=("copy:2", "registry.example:5000/train:latest"),
    )


def affinity_of(term: dict[str, Any], **meta: Any) -> PodTerm:
    read = pod({"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}, **meta)
    found = shape_of(read).pod_affinity
    assert found is not None
    return found.anti_affinity[0]


def test_terms_about_other_pods_are_read_with_their_namespaces() -> None:
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "X"}]}
    terms = [
        {"labelSelector": selector, "topologyKey": "zone"},
        {"namespaces": ["z", "a"], "topologyKey": "host"},
        {"namespaceSelector": {}, "labelSelector": {}, "topologyKey": "host"},
    ]
    weighted = [{"weight": 5, "podAffinityTerm": terms[0]}]
    shape = shape_of(
        pod(
            {
                "affinity": {
                    "podAffinity": {REQUIRED: terms[1:2], PREFERRED: weighted},
                    "podAntiAffinity": {REQUIRED: terms[2:], PREFERRED: weighted},
                }
            }
        )
    )
    web = PodTerm(
        selector=Selector(requirements=(one_of("a", operator="X"), one_of("app", "web"))),
        namespaces=("team",),
        topology_key="zone",
        weight=5,
    )
    assert shape.pod_affinity == PodAffinity(
        affinity=(PodTerm(namespaces=("a", "z"), topology_key="host"),),
        anti_affinity=(
            PodTerm(selector=Selector(), namespace_selector=Selector(), topology_key="host"),
        ),
        preferred=(web,),
        preferred_anti=(web,),
    )
    assert shape.namespace == "team"


def test_keys_of_labels_are_merged_into_a_term_with_the_pods_own_values() -> None:
    term = {
        "labelSelector": {},
        "matchLabelKeys": ["job", "absent"],
        "mismatchLabelKeys": ["tenant"],
        "topologyKey": "host",
    }
    found = affinity_of(term, labels={"job": "j1", "tenant": "t1", "other": "o"})
    assert found.selector == Selector(
        requirements=(one_of("job", "j1"), one_of("tenant", "t1", operator="NotIn"))
    )


def test_what_the_api_server_merged_into_a_term_stays_when_the_label_changes_later() -> None:
    merged = {"matchExpressions": [{"key": "job", "operator": "In", "values": ["j1"]}]}
    term = {"labelSelector": merged, "matchLabelKeys": ["job"], "topologyKey": "host"}
    assert affinity_of(term, labels={"job": "j2"}).selector == Selector(
        requirements=(one_of("job", "j1"),)
    )


def test_a_term_without_selector_selects_nothing_whatever_its_keys_are() -> None:
    term = {"matchLabelKeys": ["job"], "topologyKey": "host"}
    assert affinity_of(term, labels={"job": "j1"}).selector is None


def spread_of(constraint: dict[str, Any], **meta: Any) -> SpreadConstraint:
    (found,) = shape_of(pod({"topologySpreadConstraints": [constraint]}, **meta)).spread
    return found


def test_a_spread_constraint_has_the_apis_defaults() -> None:
    assert spread_of({"maxSkew": 2, "topologyKey": "zone"}) == SpreadConstraint(
        max_skew=2,
        topology_key="zone",
        when_unsatisfiable="DoNotSchedule",
        selector=None,
        min_domains=1,
        node_affinity_policy="Honor",
        node_taints_policy="Ignore",
    )


def test_a_spread_constraint_is_read_with_all_of_its_fields() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash"],
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
    }
    assert spread_of(constraint, labels={"hash": "h1"}) == SpreadConstraint(
        max_skew=1,
        topology_key="zone",
        when_unsatisfiable="ScheduleAnyway",
        selector=Selector(requirements=(one_of("app", "web"), one_of("hash", "h1"))),
        min_domains=3,
        node_affinity_policy="Ignore",
        node_taints_policy="Honor",
    )


def test_only_pods_whose_constraints_read_a_label_differ_by_it() -> None:
    plain = {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {}}]}
    keyed = {
        "topologySpreadConstraints": [
            {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["i"]}
        ]
    }

    def shapes(spec: dict[str, Any]) -> set[bytes]:
        return {pod(spec, name=f"w-{i}", labels={"i": str(i)}).shape for i in range(2)}

    assert len(shapes({})) == len(shapes(plain)) == 1
    assert len(shapes(keyed)) == 2


def test_claims_are_named_those_of_ephemeral_volumes_by_pod_and_volume() -> None:
    volumes = [
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "data-0"}},
    ]
    shape = shape_of(pod({"volumes": volumes}, name="w-0"))
    assert (shape.claims, shape.namespace) == (("data-0", "w-0-scratch"), "team")
    assert shape.own_claims == (("w-0-scratch", "uid-w-0"),)


def test_disks_without_a_claim_are_named_by_what_makes_two_of_them_one() -> None:
    rbd = {"monitors": ["m1", "m0"], "image": "i", "readOnly": True}
    volumes = [
        {"name": "a", "gcePersistentDisk": {"pdName": "pd", "readOnly": True}},
        {"name": "b", "awsElasticBlockStore": {"volumeID": "vol", "readOnly": True}},
        {"name": "c", "iscsi": {"iqn": "t", "lun": 0, "targetPortal": "p"}},
        {"name": "d", "rbd": rbd},
        {"name": "e", "emptyDir": {}},
    ]
    shape = shape_of(pod({"volumes": volumes}))
    assert [(one.name, one.read_only) for one in shape.disks] == [
        ("aws vol", False),
        ("gce pd", True),
        ("iscsi t", False),
        ("rbd m0 rbd i", True),
        ("rbd m1 rbd i", True),
    ]


def test_device_claims_are_named_and_those_not_made_yet_are_marked() -> None:
    claims = [
        {"name": "a", "resourceClaimName": "shared"},
        {"name": "b", "resourceClaimTemplateName": "t"},
        {"name": "c", "resourceClaimTemplateName": "t"},
        {"name": "d", "resourceClaimTemplateName": "t"},
    ]
    made = [{"name": "b", "resourceClaimName": "w-b-xyz"}, {"name": "c"}]
    shape = shape_of(pod({"resourceClaims": claims}, status={"resourceClaimStatuses": made}))
    assert shape.device_claims == ("?d", "shared", "w-b-xyz")


@pytest.mark.parametrize(
    ("resource", "shared"),
    [
        ("volcano.sh/vgpu-number", True),
        ("volcano.sh/gpu-memory", True),
        ("huawei.com/Ascend310P-memory", True),
        ("huawei.com/Ascend310P", False),
        ("nvidia.com/gpu", False),
    ],
)
def test_a_part_of_a_device_is_never_placed_by_count(resource: str, shared: bool) -> None:
    containers = [{"name": "main", "resources": {"limits": {resource: 1}}}]
    expected = (f"device:{resource}",) if shared else ()
    assert shape_of(pod({"containers": containers})).unsupported == expected


def test_a_quantity_that_overflows_is_explained_and_not_lost() -> None:
    containers = [{"name": "main", "resources": {"requests": {"memory": "99999999999Ei"}}}]
    (why,) = shape_of(pod({"containers": containers})).unsupported
    assert why.startswith("spec.containers[main].resources.requests.memory: '99999999999Ei'")
