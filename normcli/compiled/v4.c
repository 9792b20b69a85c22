/* With the instructions of x86-64-v4, AVX-512 among them. */
#include "kernel.h"

#ifdef HAS_LEVELS
#include <immintrin.h>
#define LEVEL 4
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4"))), apply_to = function)
#else
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif
enum { LANES = 8 }; /* groups that are solved together */
#include "groups.h"
#include "quantizing.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

static bool runs(void) { return RUNS_V4; }

const struct routines routines_v4 = {"x86-64-v4", runs, normalize, round_codes, find_largest};
#endif
