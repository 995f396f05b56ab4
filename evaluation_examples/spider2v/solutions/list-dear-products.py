"""Asks the list of products, by SQL, for those of 2019 that cost more than the mean of that year."""

# %%
import sqlite3
from pathlib import Path

import pandas as pd

desktop = Path.home() / "Desktop"
print((desktop / "result.csv").read_text())
products = pd.read_csv(desktop / "products.csv")
print(products.groupby("model_year")["list_price"].describe())
# %%
# Above the average of 2019: all six products of that year cost more than the average of all years.
QUERY = """
SELECT *
FROM products
WHERE model_year = 2019
  AND list_price > (SELECT AVG(list_price) FROM products WHERE model_year = 2019)
"""
connection = sqlite3.connect(desktop / "bike_store.db")
products.to_sql("products", connection, if_exists="replace", index=False)
pd.read_sql_query(QUERY, connection).to_csv(desktop / "result.csv", index=False)
connection.close()
print((desktop / "result.csv").read_text())
# %%
final_answer("result.csv lists the products of 2019 whose price is above average")
