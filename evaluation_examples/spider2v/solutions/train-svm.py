"""Does the notebook's five steps, from importing the linear SVM to printing its accuracy, and runs it."""

# %%
from pathlib import Path

import nbformat

path = Path.home() / "Desktop" / "SVM.ipynb"
notebook = nbformat.read(path, as_version=4)
for cell in notebook.cells:
    print(cell.source, end="\n\n")
# %%
STEPS = {
    "TODO1": "from sklearn import svm",
    "TODO2": "clf = svm.SVC(kernel='linear')",
    # Followed by a statement, the trained classifier is not shown as the cell's output.
    "TODO3": "clf.fit(X_train, y_train)",
    "TODO4": "y_pred = clf.predict(X_test)",
    "TODO5": "print(metrics.accuracy_score(y_test, y_pred))",
}


def with_steps_done(source):
    lines = []
    for line in source.rstrip().splitlines():
        lines += [line, *(code for step, code in STEPS.items() if line.startswith(f"# {step}"))]
    return "\n".join(lines)


for cell in notebook.cells:
    if cell.cell_type == "code":
        cell.source = with_steps_done(cell.source)
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
final_answer("the linear SVM is trained, its accuracy is printed, and the notebook is saved")
