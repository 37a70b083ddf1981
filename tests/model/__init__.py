"""The commit protocol in small, checked in every interleaving: docs/reliability.md says what of."""
