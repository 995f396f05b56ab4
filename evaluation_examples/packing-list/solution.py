"""Types into the editor's window; every wait looks at a window's title or at the saved file."""

# %%
import subprocess
import time
from pathlib import Path

import pyautogui

packing_list = Path.home() / "Desktop" / "packing-list.txt"


def wait_for(look, what, timeout_s=90):
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s} s for {what}")
        time.sleep(0.2)
    return found


def editor():
    listed = subprocess.run(["wmctrl", "-lG"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=7) for line in listed.splitlines()]
    return next((row for row in rows if packing_list.name in row[-1]), None)


window = wait_for(editor, "the editor's window")
x, y, width, height = (int(number) for number in window[2:6])
print(window[-1])
# %%
pyautogui.click(x + width // 2, y + height // 2)
pyautogui.hotkey("ctrl", "home")
pyautogui.write("umbrella\n", interval=0.05)
# %%
pyautogui.hotkey("ctrl", "s")
wait_for(lambda: packing_list.read_text().startswith("umbrella\n"), "the saved file")
print(packing_list.read_text())
# %%
final_answer("umbrella is at the top of packing-list.txt")
