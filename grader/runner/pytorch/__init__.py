"""PyTorch in a process whose CUDA device is the simulator: its tensors, and what it says of the device."""
