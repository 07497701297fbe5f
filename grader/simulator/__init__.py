"""The sim: the PTX of real nvcc, executed on the CPU by a process that plays the device."""
