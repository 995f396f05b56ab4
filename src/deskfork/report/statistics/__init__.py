"""The statistics of reports: thin layers over scipy and statsmodels that never raise for a small table."""
