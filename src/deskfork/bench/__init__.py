"""Layer 4: measurements of deskfork itself, as the README's tables show them."""
