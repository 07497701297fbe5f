"""The training run that students get: the data, the tokenizer, an epoch, both ways compared."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from first_assignment import ASSIGNMENT
from judging import libraries
from wrong_models import REFERENCE

import grader
from grader.assignments.modules import load_module
from grader.simulator.driver import RUNTIME

sys.path.insert(0, str(ASSIGNMENT.template))
import translation

TAGGED = {
    "de": """<url>http://www.ted.com/talks/one.html</url>
<keywords>talks, science</keywords>
<speaker>Jemand</speaker>
<talkid>1</talkid>
<title>Jemand: Eine Frage</title>
<description>Ein Vortrag über Fragen.</description>
Vielen Dank, Chris.
Es ist mir wirklich eine Ehre.
<reviewer></reviewer>
<translator>Niemand</translator>
""",
    "en": """<url>http://www.ted.com/talks/one.html</url>
<keywords>talks, science</keywords>
<speaker>Somebody</speaker>
<talkid>1</talkid>
<title>Somebody: A question</title>
<description>A talk about questions.</description>
Thank you so much, Chris.
And it's truly a great honor.
<reviewer></reviewer>
<translator></translator>
""",
}


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(Path(grader.__file__).parents[1]),
        "HF_HOME": str(folder / "hub"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }


def test_iwslt_is_read_as_it_is_handed_out(tmp_path: Path) -> None:
    for language, text in TAGGED.items():
        (tmp_path / f"train.tags.de-en.{language}").write_text(text, encoding="utf-8")
    assert translation.load(str(tmp_path), 10, 0) == [
        ("Jemand: Eine Frage", "Somebody: A question"),
        ("Ein Vortrag über Fragen.", "A talk about questions."),
        ("Vielen Dank, Chris.", "Thank you so much, Chris."),
        ("Es ist mir wirklich eine Ehre.", "And it's truly a great honor."),
    ]
    assert len(translation.load(str(tmp_path), 2, 0)) == 2


def test_files_that_do_not_match_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"train\.tags\.de-en\.de is missing"):
        translation.load(str(tmp_path), 10, 0)
    (tmp_path / "train.tags.de-en.de").write_text("eins\nzwei\n")
    (tmp_path / "train.tags.de-en.en").write_text("one\n")
    with pytest.raises(ValueError, match="2 German and 1 English"):
        translation.load(str(tmp_path), 10, 0)


def test_rows_of_the_hub_s_form_are_read_by_datasets(tmp_path: Path) -> None:
    rows = tmp_path / "train.jsonl"
    pairs = [("Danke.", "Thank you."), ("Größe", "size")]
    rows.write_text("".join(json.dumps({"translation": {"de": a, "en": b}}) + "\n" for a, b in pairs))
    program = "import sys, translation; print(ascii(translation.load(sys.argv[1], 9, 0)))"
    done = subprocess.run(
        [sys.executable, "-c", program, rows],
        cwd=ASSIGNMENT.template,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ascii(pairs)


def test_the_synthetic_languages_are_more_than_a_word_list() -> None:
    pairs = list(translation.synthetic(4000, 3))
    assert pairs == list(translation.synthetic(4000, 3))
    assert pairs != list(translation.synthetic(4000, 4))
    words = [word.strip(".,?") for source, _ in pairs for word in source.split()]
    rare = {word for word in set(words) if words.count(word) == 1}
    assert len(rare) > 300
    behind = [source for source, _ in pairs if ", weil " in source]
    assert len(behind) > 800
    # The verb of the second clause is its last word in the source, and never the last in the target.
    ending = {"t", "n"}
    assert {source.rstrip(".")[-1] for source in behind} == ending
    assert all(target.startswith("est que ") for source, target in pairs if source.endswith("?"))
    # A plural subject takes a verb without an s.
    plural = [target.split() for _, target in pairs if target.startswith("les ")]
    assert sum(any(word.endswith("s") for word in target[1:2]) for target in plural) == len(plural)


def test_a_line_is_source_end_target_end_padding_and_counts_the_target_only() -> None:
    pairs = [("ab", "c"), ("d", "efg"), ("".join(map(chr, range(65, 91))), "i")]
    tokenizer = translation.train_tokenizer(pairs, 300)
    text = translation.encode(pairs, tokenizer, 8, "cpu")
    (a, b, c, d, e, f, g) = (tokenizer.encode(letter).ids[0] for letter in "abcdefg")
    assert text.tokens.tolist() == [[a, b, 1, c, 2, 0, 0, 0, 0], [d, 1, e, f, g, 2, 0, 0, 0]]
    assert text.counted.tolist() == [[0, 0, 1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0, 0, 0]]
    assert torch.isinf(text.mask).tolist() == [[False] * 5 + [True] * 3, [False] * 6 + [True] * 2]
    assert text.count == 11


def with_kernels(folder: Path) -> Path:
    """The reference with its kernels built, as ``kernels.build`` would have built them."""
    copy = Path(
        shutil.copytree(REFERENCE, folder / "hw3", ignore=shutil.ignore_patterns("build", "__pycache__"))
    )
    (copy / "build").mkdir()
    for library, name in zip(libraries(), ("softmax_kernel.cu", "layernorm_kernel.cu"), strict=True):
        shutil.copy(library, copy / "build" / f"{name}.so")
    return copy


def train(folder: Path, *arguments: str, simulated: bool = False) -> dict[str, object]:
    program = [sys.executable, str(ASSIGNMENT.template / "train_translation.py"), "--tiny", *arguments]
    program += ["--folder", str(with_kernels(folder)), "--json", str(folder / "out.json")]
    if simulated:
        program = [sys.executable, "-m", "grader", "simulate", "--", *program]
    done = subprocess.run(
        program, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    record: dict[str, object] = json.loads((folder / "out.json").read_text())
    return record


def test_the_loss_falls_below_what_a_unigram_model_reaches(tmp_path: Path) -> None:
    options = ("--use-fused-kernel", "False", "--sentences", "1200", "--learning-rate", "0.01")
    record = train(tmp_path, *options)
    losses = record["losses"]
    assert len(losses) > 140
    assert sum(losses[-20:]) / 20 < record["unigram"]
    assert record["tokens_per_second"] == pytest.approx(record["tokens"] / record["seconds"])


@pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")
def test_both_ways_are_compared_on_the_simulator(tmp_path: Path) -> None:
    record = train(tmp_path, "--compare", "--sentences", "80", simulated=True)
    low, high = record["interval"]
    assert 0 < low <= record["speedup"] <= high
    assert {part["name"] for part in record["parts"]} == {"softmax", "layer norm"}
    whole = record["step_seconds"]
    for way in ("fused", "unfused"):
        assert 0 < sum(part[way] for part in record["parts"]) < whole[way]
        assert len(record["losses"][way]) > 6
    saved = sum(part["unfused"] - part["fused"] for part in record["parts"])
    assert record["predicted"] == pytest.approx(whole["unfused"] / (whole["unfused"] - saved))
    # The first step meets the same weights and words; only what dropout drops differs.
    first, second = (record["losses"][way][0] for way in ("fused", "unfused"))
    assert math.isclose(first, second, rel_tol=0.05)


def test_the_compiler_can_be_a_wheel_beside_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = load_module(ASSIGNMENT.template, "kernels")
    wheels = tmp_path / "nvidia" / "cu13"
    for folder in ("bin", "lib"):
        (wheels / folder).mkdir(parents=True)
    (wheels / "bin" / "nvcc").write_text(f'#!/bin/sh\nexec {shutil.which("nvcc")} "$@"\n')
    (wheels / "bin" / "nvcc").chmod(0o755)
    (wheels / "lib" / RUNTIME.name).symlink_to(RUNTIME)
    for source in kernels.SOURCES:
        (tmp_path / source).write_text("__global__ void kernel() {}\nvoid launch() { kernel<<<1, 1>>>(); }\n")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
        elsewhere.delenv("CUDA_HOME", raising=False)
        elsewhere.setenv("PATH", str(tmp_path))
        compiler = kernels._nvcc()
    monkeypatch.setattr(kernels, "_nvcc", lambda: compiler)
    kernels.build(tmp_path)
    assert compiler[0] == str(wheels / "bin" / "nvcc")
    assert all(RUNTIME.name.encode() in path.read_bytes() for path in (tmp_path / "build").glob("*.so"))


def test_a_kernel_that_does_not_compile_is_shown_with_the_compiler_s_words(tmp_path: Path) -> None:
    for name in ("softmax_kernel.cu", "layernorm_kernel.cu"):
        (tmp_path / name).write_text('extern "C" void launch() { not_declared(); }\n')
    program = [
        sys.executable,
        str(ASSIGNMENT.template / "train_translation.py"),
        "--use-fused-kernel",
        "True",
    ]
    done = subprocess.run(
        [*program, "--folder", str(tmp_path)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "softmax_kernel.cu did not compile" in done.stderr
    assert "not_declared" in done.stderr
