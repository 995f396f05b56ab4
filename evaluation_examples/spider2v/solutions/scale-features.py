"""Fills in the notebook's three gaps, the last of which scales the features, and runs it."""

# %%
from pathlib import Path

import nbformat

path = Path.home() / "Desktop" / "data_scaling.ipynb"
notebook = nbformat.read(path, as_version=4)
for cell in notebook.cells:
    if "TODO" in cell.source:
        print(cell.source, end="\n\n")
# %%
GAPS = {
    "TODO1": "df.head()",
    "TODO2": "X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED)",
    "TODO3": "scaler = StandardScaler().fit(X_train)\nX_train, X_test = map(scaler.transform, (X_train, X_test))",
}
for gap, code in GAPS.items():
    [cell] = [cell for cell in notebook.cells if gap in cell.source]
    lines = cell.source.splitlines()
    [place] = [number for number, line in enumerate(lines) if gap in line]
    lines.insert(place + 1, code)
    cell.source = "\n".join(lines).rstrip()
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
print([output.data["text/plain"] for output in notebook.cells[-1].outputs])
# %%
final_answer("the features are scaled, and the notebook has run to its end and is saved")
