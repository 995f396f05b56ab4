"""Starts JupyterLab on the notebook in the terminal that is open, at the port that is asked for."""

# %% include jupyterlab.py
# %%
[path] = (Path.home() / "Downloads").glob("*.ipynb")
focus_terminal()
write("cd ~/Downloads\n")
write(f"jupyter lab --port 1036 {path.name}\n")
# %%
wait("JupyterLab at port 1036", lambda: any(server["port"] == 1036 for server in servers()))
# %%
wait(f"{path.name} in the browser", lambda: any(title.startswith(path.name[:10]) for title in titles()))
# %%
final_answer(f"{path.name} is open at port 1036")
