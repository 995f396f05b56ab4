"""Selects the features, trains the tree where the notebook asks for it, and runs the notebook."""

# %%
import json
from pathlib import Path

path = Path.home() / "Desktop" / "decision_tree.ipynb"
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["source"] = "".join(cell["source"])
    if "TODO" in cell["source"]:
        print(cell["source"], end="\n\n")
# %%
GAPS = {
    "TODO1": "X = pima[feature_cols]\ny = pima['label']",
    "TODO2": "clf = DecisionTreeClassifier(random_state=SEED).fit(X_train, y_train)\ny_pred = clf.predict(X_test)",
}
for gap, code in GAPS.items():
    [cell] = [cell for cell in notebook["cells"] if gap in cell["source"]]
    cell["source"] = f"{cell['source'].rstrip()}\n{code}"
    print(cell["source"], end="\n\n")
# The notebook was made in Pyodide; the kernel it names does not exist here.
notebook["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
path.write_text(json.dumps(notebook, indent=1))
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
print([output["text"] for output in notebook["cells"][-1]["outputs"]])
# %%
final_answer("the tree is trained, its accuracy is printed, and the notebook is saved")
