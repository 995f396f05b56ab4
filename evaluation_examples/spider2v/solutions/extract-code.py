"""Takes the code cells out of the notebook with one line in JupyterLab's terminal."""

# %% include jupyterlab.py
# %%
path = DESKTOP / "numpy_problem.ipynb"
wait_kernel(path)
# %%
focus_page()
wait_shown(path)
palette("new terminal")
# %%
# With a terminal in front, the window's title names no file.
wait("the terminal's tab", lambda: active_title().startswith("JupyterLab"))
PROMPT, GREEN = (295, 160, 700, 190), (138, 226, 52)
wait("the shell's prompt", lambda: count_colour(grab(PROMPT), GREEN) > 100)
pyautogui.click(700, 500)
shown = still()
write("cd ~/Desktop\n")
shown = still(shown)
write(
    """jq -r '.cells[] | select(.cell_type == "code") | .source | join("")' numpy_problem.ipynb > code_content.txt\n"""
)
still(shown, 500)
wait("code_content.txt", lambda: (DESKTOP / "code_content.txt").exists())
wait("jq to end", lambda: subprocess.run(["pgrep", "-x", "jq"], capture_output=True).returncode == 1)
# %%
print((DESKTOP / "code_content.txt").read_text())
# %%
final_answer("code_content.txt on the Desktop holds the code of all code cells")
