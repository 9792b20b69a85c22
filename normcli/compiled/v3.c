/* With the instructions of x86-64-v3, AVX2 and FMA among them. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#pragma GCC target("arch=x86-64-v3")
#include "groups.h"

static bool runs(void) { return __builtin_cpu_supports("x86-64-v3"); }

const struct routines routines_v3 = {"x86-64-v3", runs, normalize, measure};
#else
#include "kernel.h"

static bool runs(void) { return false; }

const struct routines routines_v3 = {"x86-64-v3", runs, NULL, NULL};
#endif
