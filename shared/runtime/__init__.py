"""What every process needs around its work: settings, lifecycle, shutdown order, health and
logging.
"""
