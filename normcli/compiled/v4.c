/* With the instructions of x86-64-v4, AVX-512 among them. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC target("arch=x86-64-v4")
#include "groups.h"

static bool runs(void) { return __builtin_cpu_supports("x86-64-v4"); }

const struct routines routines_v4 = {"x86-64-v4", runs, normalize, measure};
#else
#include "kernel.h"

static bool runs(void) { return false; }

const struct routines routines_v4 = {"x86-64-v4", runs, NULL, NULL};
#endif
