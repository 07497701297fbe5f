"""From a student's source to a shared library: toolchain, sandboxed compile, cache, imports."""
