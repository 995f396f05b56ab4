"""Pure metrics, one module per domain."""
