// Twice the channels: a block for a multiprocessor, rows of 128 bytes, half the groups to scan over.
#define BLOCK 512
#define BLOCK_PAIRS 32
#include "pipelined.cu"
