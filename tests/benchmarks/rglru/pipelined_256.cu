// Half the threads with twice the steps each: half the groups to scan over, and registers for more steps at a time.
#define BLOCK 256
#define BLOCK_PAIRS 16
#include "pipelined.cu"
