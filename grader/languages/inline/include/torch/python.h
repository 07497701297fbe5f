#pragma once

#include "grader/module.h"
