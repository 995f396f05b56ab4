"""Has the notebook try each K of the range it names, and runs it."""

# %% include notebooks.py
# %%
path = DESKTOP / "KNN.ipynb"
notebook = opened(path)
show(notebook, "TODO")
# %%
# The 39 neighbours are searched once: what a KNN regressor predicts is the mean over the first K of them.
loop = """
nearest = KNeighborsRegressor(n_neighbors=39).fit(X_train, y_train).kneighbors(X_test, return_distance=False)
values = y_train.to_numpy()[nearest]
for k in range(1, 40):
    error.append(mean_absolute_error(y_test, values[:, :k].mean(axis=1)))
"""
put(notebook, "TODO", loop.strip())
show(notebook, "TODO")
save(notebook, path)
# %%
print(run(path))
# %%
print(texts(opened(path))[-1])
# %%
final_answer("the notebook shows the K with the lowest error, and is saved")
