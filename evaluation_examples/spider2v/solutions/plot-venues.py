"""Adds a cell that plots the column the way the notebook plots the others, and runs the notebook."""

# %%
import json
from pathlib import Path

path = Path.home() / "Desktop" / "notebook.ipynb"
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["source"] = "".join(cell["source"])
figures = [cell["source"] for cell in notebook["cells"] if "countplot(" in cell["source"]]
print("\n\n".join(figures))
# %%
source = figures[-1].replace('"Position"', '"H/A/N"') + "\nplt.savefig('result.png')"
cell = {"cell_type": "code", "id": "venues", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
notebook["cells"].append(cell)
path.write_text(json.dumps(notebook, indent=1))
print(source)
# %%
import subprocess

script = (
    "source ~/anaconda3/etc/profile.d/conda.sh && conda activate jupyter"
    f" && jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.timeout=1200 '{path}'"
)
run = subprocess.Popen(["bash", "-c", script], stderr=subprocess.PIPE, text=True)


def waited():
    """Wait for the run as long as one step may last; on a busy machine it needs more than one."""
    try:
        return run.communicate(timeout=240)[1][-2000:], run.returncode
    except subprocess.TimeoutExpired:
        return "still running"


print(waited())
# %%
print(waited())
# %%
print(waited())
# %%
print(waited())
# %%
from PIL import Image

with Image.open(path.with_name("result.png")) as figure:
    print(figure.size)
# %%
final_answer("result.png shows how many centuries were scored at home, away and on neutral ground")
