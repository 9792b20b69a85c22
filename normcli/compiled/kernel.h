/* What the files of the compiled kernel share: kinds of numbers, what is asked for, and what is known of groups. */
#ifndef NORMCLI_KERNEL_H
#define NORMCLI_KERNEL_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "doubles have to be doubles: no -ffast-math, no x87"
#endif

enum kind { F64, F32, F16, BF16 };
enum eps_mode { NO_EPS, INSIDE, OUTSIDE, FLOOR, SQUARE_FLOOR };
enum zero_rule { ZERO, ONE, NOT_A_NUMBER };

enum {
    BATCH = 64,  /* groups that are measured, solved and written before the next ones are read */
    SHORT = 32,  /* groups of fewer values are turned round, so that every operation runs along the groups */
    LEAF = 1024, /* values that are summed on one grid; what is added up of leaves stays exact */
    PIECE = 1024 /* values that are normalized at once */
};

static const ptrdiff_t SIZES[] = {[F64] = 8, [F32] = 4, [F16] = 2, [BF16] = 2};

/* One array: two axes of groups, one of the parts of a group, one of the values of a part. Strides are in bytes. */
struct view {
    char *data;
    enum kind kind;
    ptrdiff_t shape[3], strides[3]; /* without the parts */
    ptrdiff_t parts, part_stride;
};

/* Gamma or beta: of value i of group g, values[starts[g] + i / span]. `values` is NULL where there is none. */
struct parameter {
    const double *values;
    const int64_t *starts;
    ptrdiff_t span;
};

/* What a group is divided by, as plan.spec and `_resolve` have it. */
struct rule {
    double freedom, eps;
    enum eps_mode mode;
    enum zero_rule zero;
    bool centred;
    bool exact;         /* more than 24 bits of the divisor are kept */
    bool exact_results; /* results have more than 24 bits */
};

/* What is known of the groups of a batch, so far. */
struct batch {
    double sum[3][BATCH], square[4][BATCH];
    double counts[2][BATCH];     /* how many values of each group count, and degrees of freedom */
    double known[5][BATCH];      /* three doubles of each mean, and two of each divisor */
    double statistics[4][BATCH]; /* mean, square, root, inverse */
    int64_t left[BATCH];         /* not 0: Python has to work on it */
};

/* A value that is left to Python, which number it is in all groups, and what is known of its group. */
struct missed {
    double number, x, known[5];
};

/* One call: memory that is used again for every batch, and what is asked for. */
struct task {
    struct view in, out; /* out.data is NULL if nothing is to be written */
    struct parameter gamma, beta;
    struct rule rule;
    const double *given[5];  /* what is known of all groups; NULL: they are measured */
    const double *counts[2]; /* of all groups; NULL: all values count, with the rule's freedom */
    const uint8_t *selected; /* which values of all groups count; NULL: all do */
    double *results[7];      /* where each statistic, or double of a sum, of all groups goes; or NULL */
    bool sums_only;          /* the groups are measured alone */
    struct batch *batch;
    void *memory;
    int64_t *left; /* numbers of groups that are left to Python */
    ptrdiff_t left_count;
    struct missed *missed; /* and values of the others */
    ptrdiff_t missed_count, missed_most;
};

struct routines {
    const char *name;
    bool (*runs)(void);
    void (*normalize)(struct task *task);
};

/* Whether the compiler knows the levels of x86-64. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define HAS_LEVELS
extern const struct routines routines_v3, routines_v4;
#endif
extern const struct routines routines_baseline;

size_t count_memory(void);

#endif
