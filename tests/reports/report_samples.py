"""Records as a sim and a GPU leave them, to make reports of."""

from __future__ import annotations

from typing import Any

from grader.records.record import Record

HOSTILE = '</title></code><script>alert(1)</script>"><img src=x onerror=alert(1)>\x1b[31m\x00\u202e=1+1'
"""Markup, an escape sequence, a control character, a mark that turns directions, and a formula."""
SOURCE = {
    "first": 14,
    "lines": ["  if (lane == 0) {", "    shared[warp] = value;", "  }", "  value = shared[lane];"],
}
TITLES = {"softmax_forward": "Softmax forward", "layernorm_forward": "LayerNorm forward"}


def finding(**changes: object) -> dict[str, Any]:
    return {
        "kind": "race_shared",
        "kernel": "_Z14ker_layer_normILi128EEvPfS0_",
        "file": "layernorm_kernel.cu",
        "line": 17,
        "message": "thread (3,0,0) reads what thread (96,0,0) has written",
        "source": SOURCE,
        **changes,
    }


def two_accesses() -> dict[str, Any]:
    """A race between lines 14 and 17."""
    message = (
        "thread (0,0,0) of block (0,0,0) writes shared memory at byte 0 (line 17) that thread (33,0,0) of "
        "block (0,0,0) has read (line 14), and nothing orders the two: a __syncthreads() between them is "
        "missing"
    )
    places = [{"file": "layernorm_kernel.cu", "line": line} for line in (17, 14)]
    return finding(message=message, places=places)


def problem(name: str = "softmax_forward", **changes: object) -> dict[str, Any]:
    """A right problem on the sim; ``changes`` replace whole parts."""
    return {
        "id": name,
        "title": TITLES.get(name, name),
        "verdict": "PASS",
        "points": {"earned": 12, "decided": 12, "possible": 20},
        "build": {
            "ok": True,
            "seconds": 6.9,
            "cached": False,
            "command": "nvcc -O3 /opt/course/softmax_kernel.cu",
            "log": "",
            "resources": [{"kernel": "ker<32, 4>", "registers": 54, "spill_bytes": 0, "shared_bytes": 128}],
        },
        "correctness": {
            "verdict": "PASS",
            "groups": [
                {"name": "short rows", "verdict": "PASS", "earned": 9, "possible": 9},
                {"name": "memory and concurrency", "verdict": "PASS", "earned": 3, "possible": 3},
            ],
            "cases": [{"name": "2 x 3, normal", "group": "short rows", "verdict": "PASS"}],
        },
        "checks": [{"tool": tool, "verdict": "PASS"} for tool in ("memcheck", "racecheck")],
        "performance": {"verdict": "NOT_MEASURED", "target": 6.5, "message": "no GPU here"},
        "trust": {"verdict": "PASS"},
        **changes,
    }


def lacking(**changes: object) -> dict[str, Any]:
    """A problem of which one case of two reached a texture, which the simulator cannot run."""
    gap = {
        "kind": "instruction",
        "subject": "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}]",
        "feature": "textures",
        "function": "sample",
        "file": "softmax_kernel.cu",
        "line": 15,
        "source": SOURCE,
    }
    cases = [
        {"name": "2 x 3, normal", "group": "short rows", "verdict": "PASS"},
        {"name": "8 x 3000", "group": "long rows", "verdict": "NOT_MEASURED", "message": "t", "gaps": [gap]},
    ]
    groups = [
        {"name": "short rows", "verdict": "PASS", "earned": 4, "possible": 4},
        {"name": "long rows", "verdict": "NOT_MEASURED", "earned": 0, "possible": 5},
        {"name": "memory and concurrency", "verdict": "NOT_MEASURED", "earned": 0, "possible": 3},
    ]
    correctness = {"verdict": "NOT_MEASURED", "groups": groups, "cases": cases}
    points = {"earned": 4, "decided": 4, "possible": 20}
    return problem(verdict="NOT_MEASURED", points=points, correctness=correctness) | changes


def raced(name: str = "layernorm_forward", **changes: object) -> dict[str, Any]:
    """Wrong numbers in a case, and a race in two instances of a template."""
    output = {
        "name": "ln_res",
        "max_error": "NaN",
        "allowed": 1e-6,
        "bad": 1037,
        "total": 37000,
        "nan": 2,
        "first_bad": [{"index": [0, 999], "expected": 0.25, "got": "NaN"}],
        "picture": ["...#", "..1#"],
    }
    cases = [
        {
            "name": "37 x 1000",
            "group": "short rows",
            "verdict": "FAIL",
            "schedule": "reversed blocks and warps",
        }
        | {"diagnosis": "the last elements of a row are not written", "outputs": [output]},
        {
            "name": "38 x 1000",
            "group": "short rows",
            "verdict": "FAIL",
            "message": "not run: 37 x 1000 ended",
        },
        {
            "name": "39 x 1000",
            "group": "short rows",
            "verdict": "FAIL",
            "message": "not run: 37 x 1000 ended",
        },
        {"name": "2 x 4", "group": "short rows", "verdict": "PASS"},
    ]
    groups = [
        {"name": "short rows", "verdict": "FAIL", "earned": 0, "possible": 9},
        {"name": "memory and concurrency", "verdict": "FAIL", "earned": 0, "possible": 3},
    ]
    findings = [finding(), finding(kernel="_Z14ker_layer_normILi256EEvPfS0_")]
    parts: dict[str, Any] = {
        "verdict": "FAIL",
        "points": {"earned": 0, "decided": 12, "possible": 20},
        "correctness": {"verdict": "FAIL", "groups": groups, "cases": cases},
        "checks": [{"tool": "racecheck", "verdict": "FAIL", "findings": findings}],
    }
    return problem(name, **{**parts, **changes})


def unbuilt(name: str = "softmax_forward", log: str = "", **changes: object) -> dict[str, Any]:
    words = log or 'softmax_kernel.cu(22): error: identifier "flaot" is undefined\n  flaot x;\n  ^'
    build = {"ok": False, "seconds": 1, "cached": False, "command": "nvcc", "log": words, "resources": []}
    parts: dict[str, Any] = {
        "verdict": "FAIL",
        "points": {"earned": 0, "decided": 12, "possible": 20},
        "message": "softmax_kernel.cu did not compile",
        "build": build,
        "correctness": {
            "verdict": "FAIL",
            "groups": [
                {"name": "short rows", "verdict": "FAIL", "earned": 0, "possible": 9},
                {"name": "memory and concurrency", "verdict": "FAIL", "earned": 0, "possible": 3},
            ],
        },
        "checks": [],
        "performance": {"verdict": "NOT_MEASURED", "target": 6.5},
    }
    return problem(name, **{**parts, **changes})


def timed(name: str = "softmax_forward", speedup: float = 8.0, **changes: object) -> dict[str, Any]:
    """A right problem that was measured on three shapes."""
    verdict = "PASS" if speedup >= 6.5 else "FAIL"
    cases = [
        {
            "name": shape,
            "verdict": verdict,
            "speedup": factor * speedup,
            "interval": [factor * speedup * 0.98, factor * speedup * 1.02],
            "baseline_us": size / 400.0,
            "yours_us": size / 400.0 / (factor * speedup),
            "bandwidth_fraction": 0.9 * factor * speedup / 8,
            "minimal_bytes": size * 1000,
            "samples": {"process 1: blocks": [1.0]},
        }
        for shape, size, factor in (
            ("64 x 32", 4_000, 0.9),
            ("64 x 512", 60_000, 1.0),
            ("8 x 2048", 500_000, 1.05),
        )
    ]
    performance = {
        "verdict": verdict,
        "target": 6.5,
        "speedup": speedup,
        "interval": [speedup * 0.99, speedup * 1.01],
        "bandwidth_fraction": 0.85,
        "cases": cases,
    }
    earned = 20 if verdict == "PASS" else round(12 + 8 * speedup / 6.5, 2)
    points = {"earned": earned, "decided": 20, "possible": 20}
    return problem(name, **{"verdict": verdict, "points": points, "performance": performance, **changes})


def demanding(name: str = "softmax_forward") -> dict[str, Any]:
    """A right problem whose code is too large, where no speeds were measured."""
    code = {"measure": "code", "verdict": "FAIL", "most": 1.5, "points": 2, "found": 1.724}
    spread = {"measure": "spread", "verdict": "NOT_MEASURED", "most": 1.3, "points": 2}
    points = {"earned": 12, "decided": 14, "possible": 20}
    demands = [code, {**spread, "message": "no GPU here"}]
    return problem(name, verdict="FAIL", points=points, demands=demands)


def untrusted(name: str = "softmax_forward") -> dict[str, Any]:
    reason = "64 x 32: 1.2 us for what the device needs 14 us to read and write at full bandwidth"
    return timed(
        name,
        verdict="UNTRUSTED",
        points={"earned": 0, "decided": 20, "possible": 20},
        performance={"verdict": "UNTRUSTED", "target": 6.5, "message": reason},
        trust={"verdict": "UNTRUSTED", "reasons": [reason]},
    )


def failed_machine(name: str = "softmax_forward") -> dict[str, Any]:
    return problem(
        name,
        verdict="INFRA_ERROR",
        points={"earned": 0, "decided": 0, "possible": 20},
        message="CUDA error 719 at /opt/driver/x",
        correctness={"verdict": "INFRA_ERROR"},
    )


def record(name: str = "doejane_1001", *problems: dict[str, Any], **changes: object) -> Record:
    """A record of ``problems``, or of one right and one wrong one."""
    listed = problems or (problem(), raced())
    score = {key: sum(one["points"][key] for one in listed) for key in ("earned", "decided", "possible")}
    fields: dict[str, Any] = {
        "grader": {"version": "0.1.0", "config_sha256": "0"},
        "assignment": "llm_systems_3",
        "submission": {"name": name, "sha256": f"sha of {name}", "files": ["softmax_kernel.cu"]},
        "seed": 424242,
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 12.5,
        "device": {
            "kind": "sim",
            "name": "simulator",
            "reason": "no GPU at /dev/nvidia0",
            "compiler": "nvcc 13.0.88",
        },
        "sandbox": {"backend": "process", "enforced": ["wall time"], "not_enforced": ["network"]},
        "score": score,
        "problems": list(listed),
        "exit_code": 1,
    }
    return Record.model_validate({**fields, **changes})


def unreadable(name: str = "doejane_1001") -> Record:
    """A record of a damaged archive, in which nothing is decided."""
    undecided = problem(verdict="NOT_MEASURED", points={"earned": 0, "decided": 0, "possible": 20})
    error = "hw3.zip is not an archive or is damaged. Pack it again."
    submission = {"name": name, "sha256": "", "files": [], "error": error}
    return record(name, undecided, submission=submission)


def hostile() -> Record:
    """What a student can write, in every place that a student can write to."""
    bad = raced(
        "layernorm_forward",
        message=HOSTILE,
        printed=HOSTILE,
        checks=[
            {
                "tool": "racecheck",
                "verdict": "FAIL",
                "findings": [
                    finding(
                        kernel=HOSTILE,
                        file=HOSTILE,
                        message=HOSTILE,
                        source={"first": 17, "lines": [HOSTILE]},
                    )
                ],
            }
        ],
        hints=[{"kernel": HOSTILE, "file": HOSTILE, "line": 3, "message": HOSTILE}],
        trust={"verdict": "PASS", "reasons": [HOSTILE]},
    )
    bad["correctness"]["cases"][0] |= {"diagnosis": HOSTILE, "message": HOSTILE}
    bad["build"]["resources"][0]["kernel"] = HOSTILE
    submission = {"name": HOSTILE, "sha256": "0", "files": [HOSTILE], "notes": [HOSTILE], "error": HOSTILE}
    broken = unbuilt(log=f"{HOSTILE}\n{HOSTILE}(3): error: {HOSTILE}\n::error::{HOSTILE}", message=HOSTILE)
    return record(HOSTILE, broken, bad, submission=submission)
