"""Where a machine ended: sealed, kept, and examined by programs that its agent never touched."""
