"""Does the notebook's five steps, from importing the linear SVM to printing its accuracy, and runs it."""

# %% include notebooks.py
# %%
path = DESKTOP / "SVM.ipynb"
notebook = opened(path)
show(notebook)
# %%
put(notebook, "TODO1", "from sklearn import svm")
put(notebook, "TODO2", "clf = svm.SVC(kernel='linear')")
put(notebook, "TODO3", "clf.fit(X_train, y_train)")
put(notebook, "TODO4", "y_pred = clf.predict(X_test)")
put(notebook, "TODO5", "print(metrics.accuracy_score(y_test, y_pred))")
show(notebook, "TODO")
save(notebook, path)
# %%
print(run(path))
# %%
print(texts(opened(path))[-1])
# %%
final_answer("the linear SVM is trained, its accuracy is printed, and the notebook is saved")
