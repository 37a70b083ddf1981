"""`tutti up`: NATS and all services as processes, against the cluster of a kubeconfig.

`command` reads the flags into `options`; `all_services` runs everything in order: `nats`, the
checks of the cluster (`cluster_checks`, `other_schedulers`, `presence`, `crds`), the services
(`plan` says which and with which flags, `supervisor` keeps them running with `restarts`,
`fork_server_launcher` or `processes` starts them), `readiness` until all are ready; then it waits
for a signal and stops all in order.

Nothing here schedules: every process can also be started by hand with `python -m services.NAME`.
"""
