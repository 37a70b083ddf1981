"""Provisions what an installation needs before its services can work with NATS: keys of users, the
file by which the server distinguishes them, a CA and the server's certificate.

`planning` is pure: what is stored in, what should be stored out. `cluster` keeps it in Secrets,
`folder` in files, for an installation without Kubernetes' Secrets; `reloading` has a running server
read its files again. Run at any time, as often as wanted: what is good stays as it is.
"""
