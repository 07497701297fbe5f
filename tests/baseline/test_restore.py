"""The kernel that puts input sets into place, on the simulator: any alignment, and nothing beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.simulator.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

PROGRAM = """
#include SOURCE
#include <cstdio>
#include <cstring>
const int SIZES[] = {1, 3, 4, 12, 15, 16, 48, 160, 4096, 40000};
int main() {
  const size_t bytes = 1 << 20;
  static unsigned char source[bytes], wanted[bytes], got[bytes];
  for (size_t i = 0; i < bytes; ++i) source[i] = i * 2654435761u >> 24;
  unsigned char *from, *to;
  cudaMalloc(&from, bytes), cudaMalloc(&to, bytes), cudaMemset(to, 7, bytes), memset(wanted, 7, bytes);
  cudaMemcpy(from, source, bytes, cudaMemcpyHostToDevice);
  Piece pieces[60], *table;
  int count = 0;
  size_t at = 0;
  for (int size : SIZES)
    for (int skew : {0, 4, 1, 16, 7, 8}) {
      const bool fill = count % 3 == 2;
      const size_t target = at + skew, start = at + (skew == 8 ? 4 : skew);
      pieces[count++] = {(uint64_t)(to + target), fill ? 0 : (uint64_t)(from + start), (uint64_t)size};
      if (fill) memset(wanted + target, 0xFF, size); else memcpy(wanted + target, source + start, size);
      at += (size + skew + 31) / 16 * 16;
    }
  cudaMalloc(&table, sizeof pieces);
  cudaMemcpy(table, pieces, sizeof pieces, cudaMemcpyHostToDevice);
  launch_restore(table, count, 40000, nullptr);
  cudaMemcpy(got, to, bytes, cudaMemcpyDeviceToHost);
  puts(memcmp(got, wanted, bytes) == 0 ? "right" : "wrong");
}
"""


def test_pieces_of_every_alignment_are_copied_and_filled(
    program: Callable[[str, str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert simulate([program("restore.cu", PROGRAM)], json_path=None, leak_check=False) == 0
    assert capfd.readouterr().out == "right\n"
