"""Gives the classifier more estimators and a higher learning rate, and runs the notebook again."""

# %%
import json
from pathlib import Path

path = Path.home() / "Desktop" / "AdaBoost.ipynb"
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["source"] = "".join(cell["source"])
[classifier] = [cell for cell in notebook["cells"] if "AdaBoostClassifier(" in cell["source"]]
print(classifier["source"])
# %%
classifier["source"] = (
    classifier["source"]
    .replace("n_estimators=1,", "n_estimators=40,")
    .replace("learning_rate=0.1", "learning_rate=0.8")
)
# The notebook was made in Pyodide; the kernel it names does not exist here.
notebook["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
path.write_text(json.dumps(notebook, indent=1))
print(classifier["source"])
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
notebook = json.loads(path.read_text())
print([output.get("text") for cell in notebook["cells"] for output in cell.get("outputs", [])])
# %%
final_answer("the tuned classifier reaches an accuracy of 1.0, and the notebook is saved")
