"""`tutti job`: submit, view, suspend and resume Jobs of batch.volcano.sh, and read their logs."""
