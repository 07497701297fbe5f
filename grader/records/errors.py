"""What ends a grading although the submission is not at fault; each message says what to do."""


class MachineError(Exception):
    """This machine cannot do what is asked: something is missing, or fails."""


class DeviceError(MachineError):
    """The device, or a process that works for it, failed."""
