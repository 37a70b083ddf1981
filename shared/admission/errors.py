"""Errors of requests and of the configuration. A refusal of an object is an answer, no error."""


class BadReview(Exception):
    """A request's body is no AdmissionReview of a known version."""


class BadConfiguration(Exception):
    """The admission configuration file is invalid; the message names the place and the reason. The
    previous configuration stays in force.
    """
