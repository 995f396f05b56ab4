"""Runs all cells of the open notebook by the command palette, and saves it."""

# %% include jupyterlab.py
# %%
path = Path.home() / "Downloads/sports-products.ipynb"
wait_kernel(path)
# %%
focus_page()
wait_shown(path)
# %%
palette("run all cells", of=path)
wait("the first cell to run", lambda: kernel_of(path) == "busy")
# %%
wait_kernel(path)
save(path, has_run)
# %%
final_answer("all cells of sports-products.ipynb have been run")
