"""Starts JupyterLab on the notebook in the terminal that is open, at the port that is asked for."""

# %% include jupyterlab.py
# %%
[path] = (Path.home() / "Downloads").glob("*.ipynb")
focus_terminal()
write("cd ~/Downloads\n")
write(f"jupyter lab --port 1036 {path.name}\n")
# %%
# A step is interrupted after 300 s; a busy machine needs more of them.
happens(lambda: any(server["port"] == 1036 for server in servers()), 280)
# %%
wait("JupyterLab at port 1036", lambda: any(server["port"] == 1036 for server in servers()), timeout_s=280)
# %%
happens(lambda: any(title.startswith(path.name[:10]) for title in titles()), 280)
# %%
wait(f"{path.name} in the browser", lambda: any(title.startswith(path.name[:10]) for title in titles()), timeout_s=280)
# %%
final_answer(f"{path.name} is open at port 1036")
