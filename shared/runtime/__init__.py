"""The parts of every service process: settings, lifecycle, shutdown order, health and logging."""
