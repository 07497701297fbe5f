"""The untrusted process: it loads a student's library. The judge trusts none of its answers.

Layer: imports the standard library, and CuPy on a GPU; nothing else of the grader.
"""
