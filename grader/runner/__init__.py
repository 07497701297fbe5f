"""The untrusted side: a small process that loads a student's library. Nothing it says is believed.

Layer: imports the standard library, and CuPy on a GPU; nothing else of the grader.
"""
