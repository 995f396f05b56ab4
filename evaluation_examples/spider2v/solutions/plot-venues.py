"""Adds a cell that plots the column the way the notebook plots the others, and runs the notebook."""

# %%
from pathlib import Path

import nbformat

path = Path.home() / "Desktop" / "notebook.ipynb"
notebook = nbformat.read(path, as_version=4)
figures = [cell.source for cell in notebook.cells if "countplot(" in cell.source]
print("\n\n".join(figures))
# %%
plotted = "Position"
[similar] = [source for source in figures if f'"{plotted}"' in source]
source = similar.replace(f'"{plotted}"', '"H/A/N"').rstrip() + "\nplt.savefig('result.png')"
notebook.cells.append(nbformat.v4.new_code_cell(source))
nbformat.write(notebook, path)
print(source)
# %%
import subprocess

script = (
    "source ~/anaconda3/etc/profile.d/conda.sh && conda activate jupyter"
    f" && jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.timeout=240 '{path}'"
)
done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=280)
print(done.returncode, done.stderr[-2000:])
# %%
from PIL import Image

with Image.open(path.with_name("result.png")) as figure:
    print(figure.size)
# %%
final_answer("result.png shows how many centuries were scored at home, away and on neutral ground")
