"""Adds a cell that plots the column the way the notebook plots the others, and runs the notebook."""

# %% include notebooks.py
# %%
path = DESKTOP / "notebook.ipynb"
notebook = opened(path)
show(notebook, "countplot(")
# %%
source = notebook["cells"][-1]["source"].replace('"Position"', '"H/A/N"') + "\nplt.savefig('result.png')"
cell = {"cell_type": "code", "id": "venues", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
notebook["cells"].append(cell)
show(notebook, "H/A/N")
save(notebook, path)
# %%
print(run(path))
# %%
from PIL import Image

with Image.open(DESKTOP / "result.png") as figure:
    print(figure.size)
# %%
final_answer("result.png shows how many centuries were scored at home, away and on neutral ground")
