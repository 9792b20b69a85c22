/* With the instructions of x86-64-v4, AVX-512 among them. */
#include "kernel.h"

#ifdef HAS_LEVELS
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
enum { LANES = 8 }; /* groups that are solved together */
#include "groups.h"

static bool runs(void) { return __builtin_cpu_supports("x86-64-v4"); }

const struct routines routines_v4 = {"x86-64-v4", runs, normalize};
#endif
