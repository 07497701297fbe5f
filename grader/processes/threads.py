"""The environment in which numerical libraries start no threads of their own.

Layer: the standard library.
"""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
