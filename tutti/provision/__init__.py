"""Provisions what an installation needs before its services can connect to NATS: keys of users, the
server's file of users, a CA and the server's certificate.

`plan` is a pure function from the stored Secrets to the wanted ones. `cluster` keeps them in
Secrets, `folder` in files, for an installation without Kubernetes' Secrets; `nats_process` makes a
running server reload its files. It may run at any time and any number of times: valid keys and
certificates are kept.
"""
