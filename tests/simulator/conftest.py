import shutil
import subprocess
from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on PATH")
    folder = tmp_path_factory.mktemp("built")

    def compile_(source: str | Path, name: str, *flags: str) -> Path:
        if isinstance(source, str):
            source, text = folder / f"{name}.cu", source
            source.write_text(text)
        built = folder / name
        subprocess.run(
            ["nvcc", "-O1", *flags, "-o", str(built), str(source)], check=True, stderr=subprocess.PIPE
        )
        return built

    return compile_


@pytest.fixture(scope="session")
def runtime_library(nvcc: Compile) -> Path:
    return nvcc(PROGRAMS / "runtime.cu", "runtime.so", *LIBRARY)
