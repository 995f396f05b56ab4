"""Saves the open notebook under another name and folder."""

# %% include jupyterlab.py
# %%
opened, path = Path.home() / "sports-products.ipynb", DESKTOP / "submission.ipynb"
wait_kernel(opened)
# %%
focus_page()
wait_shown(opened)
# %%
press("ctrl", "shift", "s")
wait("the dialog that asks for a path", has_dialog)
dialog = still()
# The dialog's button has the keyboard, not its field.
pyautogui.click(620, 421)
press("ctrl", "a")
write("Desktop/submission.ipynb")
still(dialog)
press("enter")
wait(f"{path}", lambda: path.exists() and notebook(path))
# %%
# JupyterLab goes over to the new file, and asks about the old one if it has changed it since it was opened.
happens(lambda: has_dialog() or active_title().startswith(path.stem), 120)
if has_dialog():
    still()
    press("shift", "tab")
    press("enter")
    happens(lambda: not has_dialog(), 60)
# %%
final_answer("the notebook is saved as submission.ipynb on the Desktop")
