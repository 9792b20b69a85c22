/* With the instructions of x86-64-v3, AVX2 and FMA among them. */
#include "kernel.h"

#ifdef HAS_LEVELS
#pragma GCC target("arch=x86-64-v3")
enum { LANES = 4 }; /* groups that are solved together */
#include "groups.h"

static bool runs(void) { return __builtin_cpu_supports("x86-64-v3"); }

const struct routines routines_v3 = {"x86-64-v3", runs, normalize};
#endif
