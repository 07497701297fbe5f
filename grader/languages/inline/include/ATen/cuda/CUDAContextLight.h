#pragma once

#include "grader/tensor.h"
