import pytest
from click.testing import CliRunner

from shared.dialects.discovery import group_resources
from shared.kube.resources import Resource
from tutti.api.failures import Refusal
from tutti.why.command import why
from tutti.why.kinds import Kind, matching, read_reference, workloads


def kind(
    group: str, version: str, plural: str, name: str, *short: str, preferred: bool = True
) -> Kind:
    return Kind(
        resource=Resource(group, version, plural, name),
        words=frozenset({plural, name.lower(), *short}),
        preferred=preferred,
    )


SERVED = [
    kind("batch", "v1", "jobs", "Job"),
    kind("batch.volcano.sh", "v1alpha1", "jobs", "Job", "vcjob", "vj"),
    kind("kubeflow.org", "v1alpha2", "tfjobs", "TFJob", preferred=False),
    kind("kubeflow.org", "v1", "tfjobs", "TFJob"),
    kind("kubeflow.org", "v1beta1", "tfjobs", "TFJob", preferred=False),
    kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", "pg"),
    kind("scheduling.sigs.dev", "v1alpha2", "podgroups", "PodGroup"),
    kind("old.example.com", "v1alpha1", "things", "Thing", preferred=False),
]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        pytest.param("vcjob", ["jobs.batch.volcano.sh"], id="short name"),
        pytest.param("job", ["jobs.batch", "jobs.batch.volcano.sh"], id="a word of two groups"),
        pytest.param("jobs.batch", ["jobs.batch"], id="with its group"),
        pytest.param("job.batch.volcano.sh", ["jobs.batch.volcano.sh"], id="with dots in it"),
        pytest.param("job.v1alpha1.batch.volcano.sh", ["jobs.batch.volcano.sh"], id="and version"),
        pytest.param("job.v2.batch.volcano.sh", [], id="a version that is not served"),
        pytest.param(
            "podgroup",
            ["podgroups.scheduling.volcano.sh", "podgroups.scheduling.sigs.dev"],
            id="podgroup",
        ),
        pytest.param("pg", ["podgroups.scheduling.volcano.sh"], id="pg"),
        pytest.param("thing", ["things.old.example.com"], id="only in a version not preferred"),
        pytest.param("nothing", [], id="unknown"),
    ],
)
def test_a_word_means_what_kubectl_takes_it_for(word: str, found: list[str]) -> None:
    assert [each.resource.title for each in matching(word, SERVED)] == found


def test_the_preferred_version_of_a_kind_is_taken_and_another_one_when_it_is_named() -> None:
    assert [each.resource.version for each in matching("tfjob", SERVED)] == ["v1"]
    named = matching("tfjobs.v1alpha2.kubeflow.org", SERVED)
    assert [each.resource.version for each in named] == ["v1alpha2"]


@pytest.mark.parametrize("resource", group_resources(), ids=lambda one: one.title)
def test_a_bare_name_is_searched_among_the_groups_of_every_dialect(resource: Resource) -> None:
    served = Kind(resource=resource, words=frozenset({resource.plural}))
    assert workloads([served]) == [resource]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["pod/a-1"], ("pod", "a-1")),
        (["Pod", "a.b"], ("pod", "a.b")),
        (["VCJob.batch.volcano.sh/x"], ("vcjob.batch.volcano.sh", "x")),
    ],
)
def test_references_are_read_in_both_of_kubectls_ways(
    words: list[str], found: tuple[str, str]
) -> None:
    assert read_reference(words) == found


@pytest.mark.parametrize(
    "words",
    [
        ["pod/"],
        ["/a"],
        ["pod/a/b"],
        ["pod/a", "b"],
        ["a", "b", "c"],
        ["pod/../x"],
        ["pod", "a b"],
    ],
)
def test_what_is_no_reference_is_refused_with_an_example(words: list[str]) -> None:
    with pytest.raises(Refusal, match="KIND/NAME, such as pod/train-worker-0"):
        read_reference(words)


@pytest.mark.parametrize("words", [["pod/"], ["a/b/c"], ["a", "b", "c"]])
def test_what_names_no_object_is_wrong_usage(words: list[str]) -> None:
    done = CliRunner().invoke(why, words)
    assert done.exit_code == 2
    assert "is not KIND/NAME" in done.stderr
