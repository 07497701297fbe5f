"""Triton as a language of submissions: a Python file whose functions launch kernels."""
