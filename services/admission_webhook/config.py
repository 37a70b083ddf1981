"""Settings of the admission webhook."""

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta
from typing_extensions import override

from shared.dialects.ceilings import Ceilings, ceilings_of
from shared.dialects.discovery import scheduler_names
from shared.runtime.settings import ServingSettings, SettingsError

SchedulerName = Annotated[
    str, Meta(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]


class WebhookSettings(ServingSettings, frozen=True, kw_only=True):
    scheduler_name: Annotated[
        tuple[SchedulerName, ...],
        Meta(min_length=1, description="scheduler names that are ours; pods name one of them"),
    ] = scheduler_names()
    host: Annotated[str, Meta(description="address that reviews are answered on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="its port; 0: any free one")] = 8443
    register: Annotated[
        bool, Meta(description="register with the API server, once it was seen to reach us")
    ] = True
    webhook_url: Annotated[
        str,
        Meta(description="https URL by which the API server finds us; empty: https://HOST:PORT"),
    ] = ""
    service_name: Annotated[
        str, Meta(description="Service by which the API server finds us, instead of a URL")
    ] = ""
    service_namespace: Annotated[str, Meta(description="its namespace")] = ""
    configuration_name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            description="name of the two configurations that are registered; suites beside each "
            "other need different ones",
        ),
    ] = "tutti-admission"
    opt_in: Annotated[
        bool,
        Meta(description="take pods of gangs in namespaces with the label tutti.dev/schedule=true"),
    ] = True
    owner_cluster_role: Annotated[
        str,
        Meta(description="ClusterRole that the configurations belong to and go with; empty: none"),
    ] = ""
    probe_namespace: Annotated[
        str,
        Meta(min_length=1, description="where creating a ConfigMap is tried before registering"),
    ] = "default"
    admission_conf: Annotated[
        str,
        Meta(description="admission configuration file: resource groups, reloaded when it changes"),
    ] = ""
    hold_s_max: Annotated[
        int,
        Meta(
            ge=0,
            description="longest hold, in seconds: as the planner has it, to warn with",
        ),
    ] = Ceilings().hold_s
    reserve_s_max: Annotated[
        int,
        Meta(
            ge=0,
            description="longest reservation, in seconds: as the planner has it, to warn with",
        ),
    ] = Ceilings().reserve_s
    repair_deadline_s_max: Annotated[
        int,
        Meta(
            ge=0,
            description="longest repair deadline, in seconds: as the planner has it, to warn with",
        ),
    ] = Ceilings().repair_deadline_s
    minimum_run_s_max: Annotated[
        int,
        Meta(
            ge=0,
            description="longest protection from eviction, in seconds: as the planner has it",
        ),
    ] = Ceilings().minimum_run_s
    #: Limit of the delay of a creation by advice; the planner's standby answers within a few ms.
    advice_timeout_ms: Annotated[
        int, Meta(ge=0, le=1000, description="time for the planner's advice; 0: do not ask")
    ] = 50

    @property
    def ceilings(self) -> Ceilings:
        """The longest durations that users may ask for."""
        return ceilings_of(self)

    @override
    def __post_init__(self) -> None:
        """Check the settings together.

        Raises:
            SettingsError: Some contradict each other; the message names them.
        """
        super().__post_init__()
        if bool(self.service_name) != bool(self.service_namespace):
            raise SettingsError("--service-name and --service-namespace: must be given together")
        if self.service_name and self.webhook_url:
            raise SettingsError("--webhook-url and --service-name: exclude each other")
        if self.webhook_url:
            url = urlsplit(self.webhook_url)
            if url.scheme != "https" or not url.hostname or url.query or url.fragment:
                raise SettingsError(
                    f"--webhook-url: must be https://HOST[:PORT][/PATH] (given: {self.webhook_url})"
                )
