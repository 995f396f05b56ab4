"""Fills in the notebook's five gaps, from reading the file to the prediction, and runs it."""

# %% include notebooks.py
# %%
path = DESKTOP / "logistic_regression.ipynb"
notebook = opened(path)
show(notebook, "TODO")
print((DESKTOP / "data.csv").read_text()[:200])
# %%
put(notebook, 'to the variable "data"', "data = pd.read_csv(path, header=None, names=['Exam1', 'Exam2', 'Admitted'])")
put(notebook, "TODO: Implement Sigmoid", "    return 1 / (1 + np.exp(-z))")
put(notebook, 'name this column "Ones"', "data.insert(0, 'Ones', 1)")
put(notebook, "to calculate gradient", "    return X.T @ (sigmoid(X @ theta.T) - Y) / len(X)")
predicted = "    return [int(p >= 0.5) for p in np.asarray(sigmoid(X @ theta.T)).ravel()]"
put(notebook, "return the predicted label", predicted)
show(notebook, "TODO")
save(notebook, path)
# %%
print(run(path))
# %%
print(texts(opened(path))[-1])
# %%
final_answer("all five gaps are filled, and the notebook has run to its end and is saved")
