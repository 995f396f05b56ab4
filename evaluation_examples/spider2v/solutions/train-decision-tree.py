"""Selects the features, trains the tree where the notebook asks for it, and runs the notebook."""

# %% include notebooks.py
# %%
path = DESKTOP / "decision_tree.ipynb"
notebook = opened(path)
show(notebook, "TODO")
# %%
put(notebook, "TODO1", "X = pima[feature_cols]\ny = pima['label']")
trained = "clf = DecisionTreeClassifier(random_state=SEED).fit(X_train, y_train)"
put(notebook, "TODO2", trained + "\ny_pred = clf.predict(X_test)")
show(notebook, "TODO")
save(notebook, path)
# %%
print(run(path))
# %%
print(texts(opened(path))[-1])
# %%
final_answer("the tree is trained, its accuracy is printed, and the notebook is saved")
