"""Removes the kernel in the terminal that is open, by the command that asks no question."""

# %% include jupyterlab.py
# %%
specs = Path.home() / ".local/share/jupyter/kernels"
name = next(found.parent.name for found in specs.glob("*/kernel.json") if "Python (jupyterlab)" in found.read_text())
focus_terminal()
# %%
write(f"jupyter kernelspec remove -f {name}\n")
wait("the kernel to be gone", lambda: not (specs / name).exists())
# %%
final_answer('the kernel "Python (jupyterlab)" is gone')
