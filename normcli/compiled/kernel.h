/* What the files of the compiled kernel share: kinds of numbers, and what is asked for. */
#pragma once

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) && !defined(__clang__)
#error "vectors are those of GCC and Clang; with MSVC the kernel is left out, and NumPy's path gives the same bits"
#endif

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "doubles have to be doubles: no -ffast-math, no x87"
#endif

enum kind { F64, F32, F16, BF16 };
enum eps_mode { INSIDE, OUTSIDE, FLOOR };
enum { SQUARE = 3, NUMBERS = 7 }; /* three doubles of a sum and, from SQUARE on, four of the sum of squares */

static const ptrdiff_t SIZES[] = {[F64] = 8, [F32] = 4, [F16] = 2, [BF16] = 2};

/* One array: two axes of groups, one of the parts of a group, one of the values of a part. Strides are in bytes. */
struct view {
    char *data;
    enum kind kind;
    ptrdiff_t shape[4], strides[4];
};

/* Gamma or beta: of value i of group g, values[starts[g] + i / span]. `values` is NULL where there is none. */
struct parameter {
    const double *values;
    const int64_t *starts;
    ptrdiff_t span;
};

/* How the divisor of a group follows from its sums: what `make_rule` of compiled_kernel.py makes of a plan. */
struct rule {
    double freedom, eps, eps_rest;
    double of_zero; /* the inverse of a divisor that is 0; NaN: such groups are left to Python */
    int mode;       /* of enum eps_mode */
    int centred;
    int exact; /* results have more than 24 bits */
};

/* A value that is left to Python: its number among the values of all groups, itself, and its group's mean and divisor. */
struct missed {
    double number, x, known[5];
};

/* One call. */
struct task {
    struct view in, out; /* out.data is NULL if nothing is to be written */
    struct parameter parameters[2]; /* gamma and beta */
    struct rule rule;
    ptrdiff_t groups, n;      /* and values of each */
    const double *known;      /* three doubles of each mean, two of each divisor; NULL: they are measured */
    const double *counts;     /* how many values count, and degrees of freedom; NULL: all, and those of the rule */
    const bool *selected;     /* which values of all groups count; NULL: all do */
    double *results[NUMBERS]; /* arrays for four statistics, or for the doubles of the sums, of all groups; NULL: not wanted */
    bool *left;               /* which groups are left to Python */
    struct missed *missed;    /* which values of the other groups are left to Python */
    ptrdiff_t missed_count, missed_most;
};

/* Values to round onto the grid of a format, and what becomes of them. */
struct rounding {
    const double *y, *factors; /* the values, and a scale for each `shared` of them */
    uint8_t *codes;
    double *lost;  /* code * scale - y */
    double *noise; /* the sums of squares of `lost`, then of `y`, of each of some rows */
    ptrdiff_t groups, shared, rows;
    double least, largest; /* normal number, and number, of the grid */
    int digits, sign_place, is_integer;
    double error; /* the largest magnitude of `lost` */
    int64_t saturated, flushed, midpoints; /* the last says whether there are any */
};

struct routines {
    const char *name;
    bool (*runs)(void);
    void (*normalize)(struct task *task);
    void (*round_codes)(struct rounding *rounding);
    void (*find_largest)(const double *y, ptrdiff_t n, double *largest, ptrdiff_t groups);
};

/* Whether the compiler knows the levels of x86-64. Clang tests some features of a level, which no processor has without the
 * others of that level. */
#if defined(__x86_64__) && defined(__clang__) && __clang_major__ >= 12
#define HAS_LEVELS
#define RUNS_V3 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
#define RUNS_V4 (RUNS_V3 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") \
                 && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#elif defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12
#define HAS_LEVELS
#define RUNS_V3 __builtin_cpu_supports("x86-64-v3")
#define RUNS_V4 __builtin_cpu_supports("x86-64-v4")
#endif
#ifdef HAS_LEVELS
extern const struct routines routines_v3, routines_v4;
#endif
extern const struct routines routines_baseline;
