"""What can go wrong in the webhook itself; refusals are answers, not exceptions."""


class BadReview(Exception):
    """A request's body is no AdmissionReview: its sender is not an API server, or a newer one."""


class CertificateProblem(Exception):
    """Certificate or key cannot be used: the message names the file and why. What was in use before
    stays in use.
    """
