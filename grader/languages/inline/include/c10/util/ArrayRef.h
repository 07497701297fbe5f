#pragma once

#include "grader/types.h"
