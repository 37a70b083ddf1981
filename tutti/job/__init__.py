"""`tutti job`: submit, list, look at, suspend, resume and delete Jobs of batch.volcano.sh, and read
their logs.
"""
