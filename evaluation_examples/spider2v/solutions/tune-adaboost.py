"""Gives the classifier more estimators and a higher learning rate, and runs the notebook again."""

# %% include notebooks.py
# %%
path = DESKTOP / "AdaBoost.ipynb"
notebook = opened(path)
show(notebook, "AdaBoostClassifier(")
# %%
[classifier] = [cell for cell in notebook["cells"] if "AdaBoostClassifier(" in cell["source"]]
more = classifier["source"].replace("n_estimators=1,", "n_estimators=40,")
classifier["source"] = more.replace("learning_rate=0.1", "learning_rate=0.8")
show(notebook, "AdaBoostClassifier(")
save(notebook, path)
# %%
print(run(path))
# %%
print(texts(opened(path))[-1])
# %%
final_answer("the tuned classifier reaches an accuracy of 1.0, and the notebook is saved")
