"""Kernels with one bug each, in the line with the mark; the argument chooses which."""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def missing_mask(x, y, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    value = tl.load(x + at)  # missing_mask
    tl.store(y + at, 2 * value, mask=at < 1000)


@triton.jit
def unlocked(x, total, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    part = tl.sum(tl.load(x + at))
    tl.store(total, tl.load(total) + part)  # unlocked


@triton.jit
def uninitialised(x, total, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    part = tl.sum(tl.load(x + at))
    tl.atomic_add(total, part)  # uninitialised


@triton.jit
def missing_barrier(x, scratch, y, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(scratch + at, tl.load(x + at))
    turned = tl.load(scratch + size - 1 - at)  # missing_barrier
    tl.store(y + at, turned)


@triton.jit
def overlap(x, y, size: tl.constexpr):
    at = tl.program_id(0) * (size - 1) + tl.arange(0, size)
    tl.store(y + at, tl.load(x + at) * tl.program_id(0))  # overlap


x, y, scratch = torch.randn(1024), torch.zeros(1024), torch.zeros(1024)
match sys.argv[1]:
    case "missing_mask":
        missing_mask[(4,)](x[:1000].clone(), y, 256)
    case "unlocked":
        unlocked[(4,)](x, torch.zeros(1), 256)
    case "uninitialised":
        uninitialised[(4,)](x, torch.empty(1), 256)
    case "missing_barrier":
        missing_barrier[(1,)](x, scratch, y, 1024)
    case "overlap":
        overlap[(4,)](x, y, 256)
