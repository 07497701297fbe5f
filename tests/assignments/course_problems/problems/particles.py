"""A step of particles that fall: an array of structs, in place, and a struct that is passed by value."""

import numpy as np

from grader.problems.contents import Number, integers, real
from grader.problems.formula import Range, problem

PARTICLE = np.dtype([("position", "f4", 3), ("weight", "u1"), ("velocity", "f4", 3)], align=True)
STEP = np.dtype([("dt", "f4"), ("drag", "f8")], align=True)


def moved(particles, step):
    slower = particles.velocity * (1 - step.drag) - step.dt * particles.weight[:, None]
    return {"particles": {"position": particles.position + step.dt * particles.velocity, "velocity": slower}}


def inputs(n):
    particles = {"position": real(n, 3), "weight": integers(1, 255, n), "velocity": real(n, 3)}
    return {"particles": particles, "step": {"dt": Number(0.25, 0.01, 2), "drag": Number(0.1, 0.0, 0.5)}}


PROBLEM = problem(
    id="particles",
    file="particles.cu",
    launcher="launch_particles(Particle* particles, Step step, int n, cudaStream_t stream)",
    structs={"Particle": PARTICLE, "Step": STEP},
    formula=moved,
    inputs=inputs,
    sizes={"n": Range(1, 1 << 20)},
)
