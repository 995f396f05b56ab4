"""Selects the features, trains the tree where the notebook asks for it, and runs the notebook."""

# %%
from pathlib import Path

import nbformat

path = Path.home() / "Desktop" / "decision_tree.ipynb"
notebook = nbformat.read(path, as_version=4)
for cell in notebook.cells:
    if "TODO" in cell.source:
        print(cell.source, end="\n\n")
# %%
GAPS = {
    "TODO1": "X = pima[feature_cols]\ny = pima['label']",
    "TODO2": "clf = DecisionTreeClassifier(random_state=SEED).fit(X_train, y_train)\ny_pred = clf.predict(X_test)",
}
for gap, code in GAPS.items():
    [cell] = [cell for cell in notebook.cells if gap in cell.source]
    cell.source = f"{cell.source.rstrip()}\n{code}"
    print(cell.source, end="\n\n")
# The notebook was made in Pyodide; the kernel it names does not exist here.
notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
nbformat.write(notebook, path)
# %%
import subprocess

script = (
    "source ~/anaconda3/etc/profile.d/conda.sh && conda activate jupyter"
    f" && jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.timeout=240 '{path}'"
)
done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=280)
print(done.returncode, done.stderr[-2000:])
# %%
notebook = nbformat.read(path, as_version=4)
print([output.text for output in notebook.cells[-1].outputs])
# %%
final_answer("the tree is trained, its accuracy is printed, and the notebook is saved")
