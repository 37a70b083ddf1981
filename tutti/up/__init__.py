"""`tutti up`: NATS and all services as processes, against the cluster of a kubeconfig.

`command` reads the flags into `options`; `all_services` starts in order: `nats`, the checks of the
cluster (`other_schedulers`, `presence`, `crds`) and the services. `plan` lists them with their
flags, `supervisor` keeps them running with `watchdog`, `fork_server_launcher` or `processes` starts
them, `readiness` waits until all are ready. Then `all_services` waits for a signal, and stops all
in order.

Every process can also be started by hand with `python -m services.NAME`.
"""
