"""The process that reads users' manifests, run by `services.api.manifest_readers`."""
