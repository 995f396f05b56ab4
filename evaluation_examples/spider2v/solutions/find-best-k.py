"""Has the notebook try each K of the range it names, and runs it."""

# %%
from pathlib import Path

import nbformat

path = Path.home() / "Desktop" / "KNN.ipynb"
notebook = nbformat.read(path, as_version=4)
[search] = [cell for cell in notebook.cells if "TODO" in cell.source]
print(search.source)
# %%
# The 39 neighbours are searched once: what a KNN regressor predicts is the mean over the first K of them.
loop = """
nearest = KNeighborsRegressor(n_neighbors=39).fit(X_train, y_train).kneighbors(X_test, return_distance=False)
values = y_train.to_numpy()[nearest]
for k in range(1, 40):
    error.append(mean_absolute_error(y_test, values[:, :k].mean(axis=1)))
"""
before, after = search.source.split("\n\nprint(")
search.source = f"{before}{loop}\nprint({after}"
# The notebook was made in Pyodide; the kernel it names does not exist here.
notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
nbformat.write(notebook, path)
print(search.source)
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
print([output.get("text") for cell in notebook.cells for output in cell.get("outputs", [])][-1])
# %%
final_answer("the notebook shows the K with the lowest error, and is saved")
