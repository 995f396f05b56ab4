"""Corrects the cell with nbformat and runs the notebook with nbclient."""

# %%
from pathlib import Path

import nbformat

path = Path.home() / "Desktop" / "temperatures.ipynb"
notebook = nbformat.read(path, as_version=4)
for number, cell in enumerate(notebook.cells):
    print(number, cell.cell_type, cell.source)
# %%
wrong, right = "sum(temperatures) / 5", "sum(temperatures) / len(temperatures)"
for cell in notebook.cells:
    cell.source = cell.source.replace(wrong, right)
nbformat.write(notebook, path)
# %%
from nbclient import NotebookClient

NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
nbformat.write(notebook, path)
print([output.get("text") for cell in notebook.cells for output in cell.get("outputs", [])])
# %%
final_answer("the notebook divides by the number of days and prints 19.5")
