"""Runs the notebook, writes the analysis into a new cell at its end, runs that and saves."""

# %% include jupyterlab.py
# %%
path = DESKTOP / "Categorical-Data.ipynb"
focus_page()
open_path(path.name)
# %%
wait_kernel(path)
palette("run all cells")
wait("the first cell to run", lambda: kernel_of(path) == "busy")
# %%
wait_kernel(path)
shown = grab()
before = len(notebook(path)["cells"])
press("escape")
press("b")
shown = still(shown, 1_000)
press("enter")
write("means = adult.groupby(['Education', 'Above/Below 50k'])['Hours/Week'].mean()\nprint(means)")
still(shown, 1_000)
press("ctrl", "enter")
# %%
wait_kernel(path)
save(path, lambda saved: len(saved["cells"]) == before + 1 and has_run(saved))
# %%
print("".join(notebook(path)["cells"][-1]["outputs"][0]["text"]))
# %%
final_answer("the last cell prints the mean hours a week by education and income, and all cells have been run")
