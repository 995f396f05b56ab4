"""Copies the cells of notebook_2 behind the last one of notebook_1, and runs them all."""

# %% include jupyterlab.py
# %%
first, second = DESKTOP / "notebook_1.ipynb", DESKTOP / "notebook_2.ipynb"
wait_kernel(first)
# %%
focus_page()
wait_shown(first)
# %%
open_path(second.name)
# %%
wait_kernel(second)
shown = grab()
press("escape")
press("ctrl", "a")
still(shown, 1_000)
press("c")
# Before JupyterLab has saved, of its own, what is pasted now.
total = len(notebook(first)["cells"]) + len(notebook(second)["cells"])
# %%
press("ctrl", "shift", "[")
wait_shown(first)
press("escape")
for _ in range(len(notebook(first)["cells"])):
    press("down")
shown = still()
press("v")
still(shown, 1_000)
# %%
save(first, lambda saved: len(saved["cells"]) == total)
# %%
palette("run all cells")
wait_kernel(first)
save(first, has_run)
# %%
final_answer("notebook_1 ends with the cells of notebook_2, and all of them have been run")
