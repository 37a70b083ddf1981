"""Builders and instruments that several test folders share."""
