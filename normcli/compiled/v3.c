/* With the instructions of x86-64-v3, AVX2 and FMA among them. */
#include "kernel.h"

#ifdef HAS_LEVELS
#include <immintrin.h>
#define LEVEL 3
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("arch=x86-64-v3"))), apply_to = function)
#else
#pragma GCC target("arch=x86-64-v3")
#endif
enum { LANES = 4 }; /* groups that are solved together */
#include "groups.h"
#include "quantizing.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

static bool runs(void) { return RUNS_V3; }

const struct routines routines_v3 = {"x86-64-v3", runs, normalize, round_codes, find_largest};
#endif
