"""Which job plugins there are, and which others each of them needs."""

from shared.job_plugins.discovery import missing_plugins, registered_plugins


def test_every_plugin_of_volcano_is_registered_and_every_needed_plugin_exists() -> None:
    known = registered_plugins()
    volcanos = {"env", "svc", "ssh", "hcclrank", "tensorflow", "pytorch", "mpi", "ray"}
    assert set(known) == volcanos
    assert all(set(plugin.needs) <= volcanos for plugin in known.values())


def test_a_job_gets_the_plugins_that_its_plugins_need_and_that_it_does_not_name() -> None:
    assert missing_plugins(["mpi"]) == ["ssh", "svc"]
    assert missing_plugins(["mpi", "svc", "unknown"]) == ["ssh"]
    assert missing_plugins(["env"]) == []
