"""Runs the notebook at `path` and waits for its end over as many steps as a busy machine needs; wants notebooks.py."""

# %%
running = run(path)
print(waited(running))
# %%
print(waited(running))
# %%
print(waited(running))
# %%
print(waited(running))
