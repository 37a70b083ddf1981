"""Policies, plugins, templates and updates of Jobs, beyond what the recordings show."""

import pytest

from shared.admission.hypernodes import pattern_objection
from shared.admission.job_flows import find_ring
from shared.admission.jobs.pod_template import template_errors
from shared.admission.suggestions import did_you_mean
from shared.job_plugins.mpi import master_of
from shared.kinds.cron_schedule import is_schedule
from shared.kinds.job import INTERNAL_ACTIONS
from tests.services.admission_webhook.reviews import (
    Object,
    a_job,
    a_task,
    defaulted,
    judged,
    reference_objects,
    review,
    texts,
    volcano_queue,
)
from tests.support.golden import Golden


@pytest.mark.parametrize(
    ("job", "suggestion"),
    [
        (a_job(a_task(), plugins={"pytroch": []}), '(did you mean "pytorch"?)'),
        (a_job(a_task(), plugins={"SVC": []}), '(did you mean "svc"?)'),
        (
            a_job(a_task(), policies=[{"event": "PodFailure", "action": "RestartJob"}]),
            '(did you mean "PodFailed"?)',
        ),
        (
            a_job(a_task(), policies=[{"event": "PodFailed", "action": "restartjob"}]),
            '(did you mean "RestartJob"?)',
        ),
        (a_job(a_task(), queue="nightshift"), '(did you mean "night-shift"?)'),
        (
            a_job(a_task("ps"), a_task("work", dependsOn={"name": ["pss"]})),
            '(did you mean "ps"?)',
        ),
    ],
    ids=["plugin", "plugin in capitals", "event", "action", "queue", "task"],
)
def test_a_misspelt_word_is_answered_with_the_one_that_was_meant(
    job: Object, suggestion: str
) -> None:
    (text,) = texts(job, reference_objects(volcano_queue("night-shift", state="Open")))
    assert suggestion in text


@pytest.mark.parametrize("action", sorted(INTERNAL_ACTIONS))
@pytest.mark.parametrize("of", ["the job", "the task"])
def test_an_internal_action_is_refused_behind_an_event_and_not_behind_an_exit_code_as_by_volcano(
    action: str, of: str
) -> None:
    def job(policy: Object) -> Object:
        policies = [{**policy, "action": action}]
        whole = of == "the job"
        return a_job(a_task(policies=[] if whole else policies), policies=policies if whole else [])

    assert texts(job({"exitCode": 7})) == []
    (text,) = texts(job({"event": "PodFailed"}))
    assert "invalid policy action" in text


def test_nothing_is_suggested_for_what_resembles_nothing() -> None:
    assert did_you_mean("zebra", ["env", "svc"]) == ""
    assert did_you_mean("", ["env"]) == ""


def test_all_violations_are_reported_at_once_with_their_places(golden: Golden) -> None:
    template = {"spec": {"containers": [{"name": "Main"}], "restartPolicy": "x"}}
    task = a_task("a", policies=[{"action": "RestartJob"}]) | {"template": template}
    job = a_job(task, plugins={"nope": []}, volumes=[{"mountPath": "/d"}])
    errors = judged(review(job)).errors
    # Once: Volcano's users look for its words, which have another name for the place.
    golden(*(error.text for error in errors if "restartPolicy" in error.text))
    assert [error.path for error in errors] == [
        "spec.tasks[0].policies[0]",
        "spec.tasks[0].template.spec.containers[0].name",
        "spec.tasks[0].template.spec.containers[0].image",
        "spec.tasks[0].template.spec.restartPolicy",
        "spec.plugins.nope",
        "spec.volumes[0]",
    ]


def test_the_plugins_that_plugins_need_are_added_and_given_ones_kept() -> None:
    job = a_job(a_task("master"), plugins={"mpi": [], "svc": ["--inject-hosts-env=false"]})
    assert defaulted(job)["spec"]["plugins"] == {
        "mpi": [],
        "ssh": [],
        "svc": ["--inject-hosts-env=false"],
    }


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        (["--master=lead"], "lead"),
        (["-master=lead"], "lead"),
        (["--master", "lead"], "lead"),
        (["--port=1", "--master=a", "--master=b"], "b"),
        (["lead", "--master=late"], "master"),
        ([], "master"),
    ],
    ids=str,
)
def test_flags_are_read_as_go_reads_them(flags: list[str], value: str) -> None:
    assert master_of(flags) == value


GOOD_TEMPLATE: Object = {
    "metadata": {"labels": {"app.example/x": "", "a": "B_c.d"}, "annotations": {"A/b": "any text"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
                "env": [
                    {"name": "A B", "value": ""},
                    {
                        "name": "N",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}},
                    },
                ],
                "resources": {
                    "requests": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": 2},
                    "limits": {"cpu": 2, "memory": "1Gi", "example.com/gpu": "2"},
                    "claims": [{"name": "device"}],
                },
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "livenessProbe": {"tcpSocket": {"port": 80}},
            }
        ],
        "initContainers": [
            {
                "name": "side",
                "image": "busybox",
                "restartPolicy": "Always",
                "readinessProbe": {"exec": {"command": ["true"]}},
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}],
        "resourceClaims": [{"name": "device", "resourceClaimName": "d"}],
        "tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute"}],
        "nodeSelector": {"disk": "ssd"},
        "hostname": "h",
        "subdomain": "s",
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "podAffinityTerm": {"topologyKey": "zone"}}
                ]
            },
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["3"]}]}
                    ]
                }
            },
        },
    },
}


def test_a_template_that_uses_much_of_kubernetes_is_good() -> None:
    assert list(template_errors(GOOD_TEMPLATE)) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z"}]},
            "topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "tolerations[0].effect"),
        ({"volumes": [{"name": "V"}]}, "volumes[0].name"),
        ({"initContainers": [{"name": "i", "image": "i"}] * 2}, "initContainers[1].name"),
        ({"initContainers": [{"name": "c", "image": "i"}]}, "initContainers[0].name"),
        ({"initContainers": [{"name": 5, "image": "i"}]}, "initContainers[0].name"),
        (
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": "80"}]}]},
            "containers[0].ports[0].containerPort",
        ),
    ],
    ids=[
        "affinity without key",
        "spread without action",
        "unknown effect",
        "volume's name",
        "init containers of one name",
        "init container with a container's name",
        "name that is no text",
        "port that is no number",
    ],
)
def test_a_template_is_refused_for(spec: Object, path: str) -> None:
    whole = {"spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    assert [found.path for found in template_errors(whole)] == [f"template.spec.{path}"]


def test_a_claim_that_the_controller_wrote_is_no_change() -> None:
    claim = {"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    old = a_job(a_task(), volumes=[claim])
    new = a_job(a_task(), volumes=[claim | {"volumeClaimName": "trial-pvc-abc"}])
    assert texts(new, old=old) == []
    moved = a_job(a_task(), volumes=[claim | {"mountPath": "/e"}])
    assert [text.partition(":")[0] for text in texts(moved, old=old)] == ["spec.volumes"]


def test_a_job_of_ours_cannot_be_given_to_another_scheduler() -> None:
    old = a_job(a_task(), schedulerName="volcano")
    new = a_job(a_task(), schedulerName="other")
    assert [text.partition(":")[0] for text in texts(new, old=old)] == ["spec.schedulerName"]


@pytest.mark.parametrize(
    ("needs", "circle"),
    [
        ({"a": [], "b": ["a"], "c": ["a", "b"]}, []),
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
        ({"a": ["unknown"]}, []),
    ],
    ids=["none", "itself", "behind others", "unknown names"],
)
def test_a_ring_is_found(needs: dict[str, list[str]], circle: list[str]) -> None:
    assert find_ring(needs) == circle


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain = {str(index): [str(index + 1)] for index in range(5000)}
    assert find_ring(chain) == []
    assert find_ring(chain | {"5000": ["0"]})[0] == "0"


@pytest.mark.parametrize(
    "pattern", ["^n[0-9]+$", "(?i)a", "(?P<x>a)", r"\pL+", "[[:alpha:]]", "a{2,3}?"]
)
def test_patterns_that_go_knows_are_good(pattern: str) -> None:
    assert pattern_objection(pattern) == ""


@pytest.mark.parametrize("pattern", ["n[", "(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", "a++", "(?>a)"])
def test_patterns_that_go_does_not_know_are_refused(pattern: str) -> None:
    assert pattern_objection(pattern)


@pytest.mark.parametrize("text", ["@every 1h30m", "1,2-5/2 */3 ? JAN-mar 0", "0 0 1 1 sun"])
def test_schedules(text: str) -> None:
    assert is_schedule(text)


@pytest.mark.parametrize(
    "text", ["@every", "@every 5", "5-1 * * * *", "* * 0 * *", "*-5 * * * *", "a * * * *"]
)
def test_no_schedules(text: str) -> None:
    assert not is_schedule(text)
