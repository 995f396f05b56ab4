"""One module per provider: docker, qemu, fake."""
