"""Guest image and QEMU image: recipes, stages, store."""
