"""The seeds' manifests, applied word for word to a real control plane and played to the end."""
