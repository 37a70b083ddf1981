"""What an intruder can do: the threats of docs/security.md, tried."""
