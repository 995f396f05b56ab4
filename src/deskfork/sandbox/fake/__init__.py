"""The fake provider: a sandbox without a machine, for tests and dry runs."""
