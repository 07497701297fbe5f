"""The untrusted process, which loads a student's library. The judge trusts none of its answers.

Layer: imports the standard library, CuPy on a GPU and PyTorch for models, but nothing else of the grader.
"""
