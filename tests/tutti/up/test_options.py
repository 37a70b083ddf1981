from pathlib import Path

import pytest

from tutti.up.options import (
    SERVICES,
    OptionError,
    UpOptions,
    check_addresses,
    check_combination,
    default_data_dir,
    read_replicas,
)


def test_two_planners_run_by_default_and_one_of_everything_else() -> None:
    options = UpOptions()
    assert options.count("gang-planner") == 2
    assert {options.count(name) for name in ("watcher", "controller")} == {1}
    assert {options.count(name) for name in ("gang-planner", "binder")} == {2}
    assert {options.count(name) for name in ("admission-webhook", "api")} == {1}


def test_a_service_that_is_switched_off_does_not_run_whatever_its_replicas() -> None:
    options = UpOptions(webhook=False, api=False, replicas={"admission-webhook": 2, "api": 2})
    assert {options.count(name) for name in ("admission-webhook", "api")} == {0}


def test_replicas_are_read_per_service_and_the_last_one_counts() -> None:
    assert read_replicas(("binder=2", "watcher=0", "binder=3")) == {"binder": 3, "watcher": 0}


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        pytest.param("binder", "must be SERVICE=N", id="no number"),
        pytest.param("bindr=1", "no service 'bindr'", id="misspelt service"),
        pytest.param("binder=two", "a number from 0 to 16", id="a word"),
        pytest.param("binder=-1", "a number from 0 to 16", id="negative"),
        pytest.param("binder=17", "a number from 0 to 16", id="too many"),
        pytest.param("binder=²", "a number from 0 to 16", id="a digit that is no number"),
    ],
)
def test_wrong_replicas_are_refused_with_flag_and_rule(given: str, rule: str) -> None:
    with pytest.raises(OptionError, match=rule) as refusal:
        read_replicas((given,))
    assert f"--replicas {given}" in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        pytest.param(UpOptions(jaeger_url="jaeger:16686"), "--jaeger", id="no scheme"),
        pytest.param(UpOptions(jaeger_url="https://jaeger/?x=1"), "--jaeger", id="a query"),
        pytest.param(UpOptions(jaeger_url="https://me:secret@jaeger"), "--jaeger", id="a password"),
        pytest.param(UpOptions(otlp_endpoint="grpc://collector:4317"), "--otlp", id="no HTTP"),
        pytest.param(UpOptions(otlp_endpoint="http://me:secret@otlp"), "--otlp", id="a user"),
    ],
)
def test_wrong_addresses_are_refused_with_flag_and_rule_and_never_repeated(
    options: UpOptions, flag: str
) -> None:
    with pytest.raises(OptionError) as refusal:
        check_addresses(options)
    assert str(refusal.value).startswith(
        f"{flag}: must be http:// or https://, without credentials"
    )
    assert "secret" not in str(refusal.value)


def test_addresses_that_services_take_are_taken() -> None:
    check_addresses(UpOptions())
    check_addresses(
        UpOptions(jaeger_url="https://ops.example/jaeger", otlp_endpoint="http://collector:4318")
    )


@pytest.mark.parametrize(
    ("server", "folder"),
    [
        ("https://127.0.0.1:6443", "127.0.0.1-6443"),
        ("https://api.example.com/k8s/clusters/c-1/", "api.example.com-k8s-clusters-c-1"),
        ("https://user:secret@host:1", "host-1"),
        ("https://[::1]:6443", "---1--6443"),
    ],
)
def test_each_cluster_has_a_data_folder_of_its_own(server: str, folder: str) -> None:
    assert default_data_dir(server, {"XDG_DATA_HOME": "/data"}) == Path("/data/tutti") / folder


def test_the_data_home_is_the_users_own_where_nothing_is_set() -> None:
    assert default_data_dir("https://h", {}) == Path("~/.local/share/tutti/h").expanduser()


def test_what_observes_runs_nothing_that_could_write() -> None:
    options = UpOptions(observe=True)
    assert options.services == ("watcher", "gang-planner", "observer")
    assert {options.count(name) for name in SERVICES if name not in options.services} == {0}
    assert options.count("observer") == 1
    assert UpOptions().count("observer") == 0


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (UpOptions(observe=True, nats_url="nats://h:1"), "--nats"),
        (UpOptions(observe=True, install_crds=True), "--install-crds"),
        (UpOptions(observe=True, take_over=True), "--take-over"),
        (UpOptions(observe=True, api=True), "--api"),
        (UpOptions(observe=True, api_port=8444), "--api-port"),
        (UpOptions(observe=True, jaeger_url="http://jaeger"), "--jaeger"),
        (UpOptions(observe=True, replicas={"binder": 1}), "--replicas binder"),
        (UpOptions(report=Path("report.json")), "--report"),
        (UpOptions(kube_batch_crds=True), "--kube-batch-crds"),
        (UpOptions(api=False, api_port=8444), "--api-port"),
        (UpOptions(api=False, jaeger_url="http://jaeger"), "--jaeger"),
        (UpOptions(api=False, replicas={"api": 2}), "--replicas api"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_flags_that_do_not_go_together_are_refused(options: UpOptions, flag: str) -> None:
    with pytest.raises(OptionError, match=f"^{flag}: "):
        check_combination(options)


def test_an_observation_may_have_a_report_and_more_planners() -> None:
    check_combination(UpOptions(observe=True, report=Path("r"), replicas={"gang-planner": 1}))
    check_combination(UpOptions(take_over=True))
    check_combination(UpOptions(api_port=8444, replicas={"api": 2}))
    check_combination(UpOptions(api=False, replicas={"api": 0}))
