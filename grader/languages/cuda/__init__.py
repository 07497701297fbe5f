"""CUDA C++: from a source file to a shared library, sandboxed and cached, and to the launchers in it."""
