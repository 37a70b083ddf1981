"""Creates the credentials with which services connect to NATS: keys of users, the server's file of
users, a CA and the server's certificate.

`plan` is a pure function from the stored Secrets to the wanted ones. `stores` keeps them in
Secrets, or in files, for an installation without Kubernetes' Secrets; `nats_process` makes a
running server reload its files. Provisioning is idempotent: valid keys and certificates are kept.
"""
