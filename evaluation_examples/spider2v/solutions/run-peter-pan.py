"""Gets the package and the word list that the notebook asks for, and runs it in JupyterLab."""

# %% include jupyterlab.py
# %%
import subprocess

path = DESKTOP / "notebook.ipynb"
for cell in notebook(path)["cells"]:
    if cell["cell_type"] == "code":
        print("".join(cell["source"]), end="\n\n")


def in_jupyter(command):
    """Run a command as the terminal would, and return what came of it."""
    script = f"source ~/anaconda3/etc/profile.d/conda.sh && conda activate jupyter && {command}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=600)
    return f"{command}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


# %%
print(in_jupyter("pip install nltk"))
# %%
print(in_jupyter("python -m nltk.downloader stopwords"))
# %%
# In JupyterLab, which shows and keeps a printed CR LF, as the page's lines end, as one line's end: nbconvert does not.
subprocess.run(["wmctrl", "-a", "JupyterLab"], check=True, timeout=60)
wait_shown(path)
# %%
wait_kernel(path)
focus_page()
# %%
palette("run all cells")
wait("the first cell to run", lambda: kernel_of(path) == "busy")
# %%
wait_kernel(path)
save(path, has_run)
# %%
final_answer("the notebook runs to its end, and is saved")
