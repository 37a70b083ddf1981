"""`tutti job`: submit, list, view, suspend, resume and delete Jobs of batch.volcano.sh, and read
their logs.
"""
