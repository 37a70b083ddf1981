"""`tutti console`: the console in a browser on this machine, with the user's kubeconfig."""
