"""Clears the outputs of all cells of the open notebook by the command palette, and saves it."""

# %% include jupyterlab.py
# %%
path = DESKTOP / "linear_regression.ipynb"
wait_kernel(path)
# %%
focus_page()
wait_shown(path)


# %%
def is_cleared(saved):
    return not any(cell.get("outputs") or cell.get("execution_count") for cell in saved["cells"])


palette("clear outputs of all cells")
still()
save(path, is_cleared)
# %%
final_answer("linear_regression.ipynb has no outputs any more, and is saved")
