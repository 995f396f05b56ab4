"""Fills in the notebook's three gaps, the last of which scales the features, and runs it."""

# %% include notebooks.py
# %%
path = DESKTOP / "data_scaling.ipynb"
notebook = opened(path)
show(notebook, "TODO")
# %%
put(notebook, "TODO1", "df.head()")
split = "X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED)"
put(notebook, "TODO2", split)
scaled = """
scaler = StandardScaler().fit(X_train)
X_train = scaler.transform(X_train)
X_test = scaler.transform(X_test)
"""
put(notebook, "TODO3", scaled.strip())
show(notebook, "TODO")
save(notebook, path)
# %%
print(run(path))
# %%
print(texts(opened(path))[-1])
# %%
final_answer("the features are scaled, and the notebook has run to its end and is saved")
