"""Metrics on Jupyter notebooks: guest bytes, of any size and shape."""

from deskfork.evaluation.metrics.notebooks.cells import compare_notebook_cells
from deskfork.evaluation.metrics.notebooks.documents import compare_ipynb_files
from deskfork.evaluation.metrics.notebooks.outputs import compare_notebook_outputs
from deskfork.evaluation.metrics.notebooks.state import are_jupyter_outputs_cleared, is_jupyter_cell_executed

__all__ = [
    "are_jupyter_outputs_cleared",
    "compare_ipynb_files",
    "compare_notebook_cells",
    "compare_notebook_outputs",
    "is_jupyter_cell_executed",
]
