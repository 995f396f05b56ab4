"""Layer 2: images, templates, forks and the providers that open them."""
