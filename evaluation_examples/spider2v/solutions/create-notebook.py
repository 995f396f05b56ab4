"""Creates a notebook from the launcher, pastes the code of code.py into its cell, and saves it as tensor.ipynb."""

# %% include jupyterlab.py
# %%
focus_page()
LAUNCHER = (300, 150, 1230, 735)
YELLOW = (255, 212, 59)


def first_python_card(picture):
    """Return the middle of the upper left Python logo on the launcher, None when there is none."""
    for top in range(LAUNCHER[1], LAUNCHER[3], 10):
        for left in range(LAUNCHER[0], LAUNCHER[2], 10):
            if count_colour(picture.crop((left, top, left + 10, top + 10)), YELLOW) > 20:
                return left + 5, top + 5
    return None


card = wait("the launcher's cards", lambda: first_python_card(grab()))
untitled = DESKTOP / "Untitled.ipynb"
pyautogui.click(*card)
wait_shown(untitled)
# %%
wait_kernel(untitled)
open_path("code.py")
# %%
shown = still()
press("ctrl", "a")
still(shown, 1_000)
press("ctrl", "c")
press("ctrl", "shift", "[")
wait_shown(untitled)
shown = grab()
press("enter")
press("ctrl", "v")
still(shown, 2_000)
# %%
path = DESKTOP / "tensor.ipynb"
press("ctrl", "s")
wait("the dialog that asks for a name", has_dialog)
dialog = still()
press("ctrl", "a")
write("tensor.ipynb")
still(dialog)
press("enter")
wait(f"{path.name} on the Desktop", path.exists)
wait_shown(path)
# %%
code = (DESKTOP / "code.py").read_text()
save(path, lambda saved: ["".join(cell["source"]) for cell in saved["cells"]] == [code])
# %%
final_answer("tensor.ipynb holds the code of code.py in its one cell")
