"""Where kernels execute: ``gpu`` and ``sim`` behind the protocol of ``devices.device``."""
