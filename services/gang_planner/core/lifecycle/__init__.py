"""A gang's lifecycle: assessment, repair, release, backoff, holds, deadlines."""
