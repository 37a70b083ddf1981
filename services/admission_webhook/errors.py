"""What can go wrong in the webhook itself; refusals are answers, not exceptions."""


class BadReview(Exception):
    """A request's body is no AdmissionReview: its sender is not an API server, or a newer one."""


class BadConfiguration(Exception):
    """The admission configuration file is not what it must be: the message says where and why. What
    was in force before stays in force.
    """


class CertificateProblem(Exception):
    """Certificate or key cannot be used: the message names the file and why. What was in use before
    stays in use.
    """
