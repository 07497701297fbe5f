"""Kernels with one bug each, in the lines with the mark; the argument chooses which."""

import sys

import torch
import triton
import triton.language as tl

torch.set_default_device("cuda")


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


@triton.jit
def unmasked_store(x, y, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, 2 * value)  # unmasked_store


@triton.jit
def whole_chunks(x, y, n, size: tl.constexpr):
    first = tl.program_id(0) * size
    value = tl.make_tensor_descriptor(x, [n], [1], [size]).load([first])
    tl.make_tensor_descriptor(y, [n], [1], [size]).store([first], 2 * value)  # whole_chunks


@triton.jit
def added_chunks(x, total, n, size: tl.constexpr):
    first = tl.program_id(0) * size
    value = tl.make_tensor_descriptor(x, [n], [1], [size]).load([first])
    tl.make_tensor_descriptor(total, [n], [1], [size]).atomic_add([first], value)  # added_chunks


@triton.jit
def ignored_target(x, target, loss, columns):
    row = tl.program_id(0)
    picked = tl.load(x + row * columns + tl.load(target + row))  # ignored_target
    tl.store(loss + row, -picked)


@triton.jit
def half_written(x, scratch, y, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(scratch + at, tl.load(x + at), mask=at < size // 2)
    tl.debug_barrier()
    tl.store(y + at, tl.load(scratch + at))  # half_written


@triton.jit
def backwards(x, size: tl.constexpr):
    at = tl.arange(0, size)
    value = tl.load(x + size - 1 - at)  # backwards
    tl.store(x + at, value)


@triton.jit
def shared_number(x, y, number, size: tl.constexpr):
    at = tl.arange(0, size)
    factor = tl.load(number)
    tl.store(number, factor / 2)  # shared_number
    tl.store(y + at, factor * tl.load(x + at))


@triton.jit
def neighbours(x, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    left = tl.load(x + at - 1, mask=at > 0, other=0.0)  # neighbours
    tl.debug_barrier()
    tl.store(x + at, (tl.load(x + at) + left) / 2)  # neighbours


@triton.jit
def same_bins(x, index, out, size: tl.constexpr):
    at = tl.arange(0, size)
    bins = out + tl.load(index + at)
    tl.store(bins, tl.load(bins) + tl.load(x + at))  # same_bins


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
    case "unmasked_store":
        unmasked_store[(4,)](x, y[:1000].clone(), 1000, 256)
    case "whole_chunks":
        whole_chunks[(4,)](x[:999].clone(), y[:999].clone(), 999, 256)
    case "added_chunks":
        added_chunks[(4,)](x[:999].clone(), y[:999].clone(), 999, 256)
    case "ignored_target":
        ignored_target[(4,)](x, torch.tensor([5, 3, -700, 1]), y, 256)
    case "half_written":
        half_written[(1,)](x, torch.empty(1024), y, 1024)
    case "backwards":
        backwards[(1,)](x, 1024)
    case "shared_number":
        shared_number[(1,)](x, y, torch.ones(1), 1024)
    case "neighbours":
        neighbours[(4,)](x, 256)
    case "same_bins":
        same_bins[(1,)](x, torch.arange(1024) % 16, y, 1024)
