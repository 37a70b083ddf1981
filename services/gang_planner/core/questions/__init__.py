"""Questions that change nothing: would it fit, whom would it displace, who has what."""
