"""Runs the notebook at `path` and waits for its end; wants notebooks.py."""

# %%
print(run(path))
