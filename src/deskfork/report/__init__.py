"""Layer 4: tables and figures over finished runs."""
