"""Real operators on a real cluster with Tutti: parts of `make certify`, each built first."""
