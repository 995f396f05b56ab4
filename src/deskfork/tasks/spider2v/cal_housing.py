"""The California housing table in the form in which scikit-learn keeps it once it has fetched it.

`fetch_california_housing` reads `cal_housing_py3.pkz` in its data home before it asks the network: joblib's pickle,
deflated, of the table as it was published, its columns in another order. Nothing is divided yet: scikit-learn computes
its averages from the cached table at each call.

Source: scikit-learn 1.4, sklearn/datasets/_california_housing.py (`fetch_california_housing`).
"""

import struct
import zlib

ROWS = 20_640
COLUMNS = 9
_HEADER = "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,"
# Where scikit-learn looks for each: value, income, age, rooms, bedrooms, population, households, latitude, longitude.
_ORDER = (8, 7, 2, 3, 4, 5, 6, 1, 0)
# numpy.ndarray's own pickle, spelled out so that no numpy is needed here, and none but 1.x's names are in it.
_NEW_ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"
_FLOAT64 = (
    b"cnumpy\ndtype\n(X\x02\x00\x00\x00f8I00\nI01\ntR(K\x03X\x01\x00\x00\x00<NNNJ"
    + b"\xff" * 4
    + b"J"
    + b"\xff" * 4
    + b"K\x00tb"
)
_COMPRESSION_LEVEL = 6


def cached_table(published: str) -> bytes:
    """Return the contents of `cal_housing_py3.pkz`.

    Args:
        published: The table as StatLib published it, with one header line.

    Raises:
        ValueError: It is not that table.
    """
    header, *lines = published.splitlines()
    if not header.replace(" ", "").startswith(_HEADER) or len(lines) != ROWS:
        raise ValueError(f"expected the header {_HEADER}… and {ROWS} rows, found {header[:80]!r} and {len(lines)} rows")
    values: list[float] = []
    for line in lines:
        row = [float(field) for field in line.split(",")]
        if len(row) != COLUMNS:
            raise ValueError(f"expected {COLUMNS} columns, found {line[:80]!r}")
        values += (row[column] for column in _ORDER)
    raw = struct.pack(f"<{ROWS * COLUMNS}d", *values)
    shape = struct.pack("<BiBi", 0x4A, ROWS, 0x4A, COLUMNS)
    content = b"B" + struct.pack("<I", len(raw)) + raw
    pickled = b"\x80\x03" + _NEW_ARRAY + b"(K\x01" + shape + b"\x86" + _FLOAT64 + b"\x89" + content + b"tb."
    return zlib.compress(pickled, _COMPRESSION_LEVEL)
