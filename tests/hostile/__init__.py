"""What somebody can do who should not be there: the threats of docs/security.md, tried."""
