// What your operators share. HANDOUT.md says what each must do. You may change everything here, or generate it.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// YOUR CODE HERE
// 1. Where the elements of an operand are: its pointer, number, strides.
// 2. A kernel that computes one element of the output from one element of each operand.
// 3. A function for the host that prepares and launches it, on the stream that it is given.
