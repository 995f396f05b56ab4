"""Layer 1: the channels into a guest: Jupyter kernel, observer, SSH, QMP."""
