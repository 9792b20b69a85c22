/* Arithmetic without rounding: what normcli/numerics/pairs.py does, for doubles and for vectors of them alike. */
#ifndef NORMCLI_EXACT_H
#define NORMCLI_EXACT_H

#include "kernel.h"

#define ALWAYS static inline __attribute__((always_inline))

/* Do the same for either value of a condition, which is then known to the compiler. */
#define WITH(name, condition, ...)                  \
    if (condition) {                                \
        enum { name = true };                       \
        __VA_ARGS__;                                \
    } else {                                        \
        enum { name = false };                      \
        __VA_ARGS__;                                \
    }

/* Groups that are solved together. */
#if defined(__AVX512F__)
enum { LANES = 8 };
#elif defined(__AVX__)
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif

typedef double vector __attribute__((vector_size(8 * LANES)));
typedef int64_t mask __attribute__((vector_size(8 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef int8_t bytes __attribute__((vector_size(LANES)));

/* two_sum: s + e = a + b. */
#define TWO_SUM(s, e, a, b)                                       \
    do {                                                          \
        const __typeof__(a) a_ = (a), b_ = (b);                   \
        const __typeof__(a) s_ = a_ + b_, r_ = s_ - a_;           \
        (e) = (a_ - (s_ - r_)) + (b_ - r_), (s) = s_;             \
    } while (0)

/* quick_two_sum: the same where |a| >= |b| or a = 0. */
#define QUICK_TWO_SUM(s, e, a, b)                                 \
    do {                                                          \
        const __typeof__(a) a_ = (a), b_ = (b), s_ = a_ + b_;     \
        (e) = b_ - (s_ - a_), (s) = s_;                           \
    } while (0)

#define SPLITTER 0x8000001p0

#define DEFINE_CAST(name, from, to)             \
    ALWAYS to name(from value)                  \
    {                                           \
        to bits;                                \
        memcpy(&bits, &value, sizeof bits);     \
        return bits;                            \
    }
DEFINE_CAST(get_bits, double, int64_t)
DEFINE_CAST(from_bits, int64_t, double)
DEFINE_CAST(get_float_bits, float, uint32_t)
DEFINE_CAST(make_float, uint32_t, float)

/* What p = a * b leaves of the product: the same bits either way, where nothing over- or underflows. */
ALWAYS double find_rest(double a, double b, double p)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(a, b, -p);
#else
    const double c = SPLITTER * a, d = SPLITTER * b, ah = c - (c - a), bh = d - (d - b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* two_prod: p + e = a * b. */
ALWAYS void two_prod(vector *p, vector *e, vector a, vector b)
{
    const vector product = a * b;
    for (int i = 0; i < LANES; i++) (*e)[i] = find_rest(a[i], b[i], product[i]);
    *p = product;
}

ALWAYS vector fill(double value) { return (vector){0} + value; }
ALWAYS vector choose(mask where, vector a, vector b) { return (vector)((where & (mask)a) | (~where & (mask)b)); }
ALWAYS vector absolute(vector a) { return (vector)((mask)a & INT64_MAX); }

ALWAYS vector load(const double *from)
{
    vector a;
    memcpy(&a, from, sizeof a);
    return a;
}

ALWAYS void put(double *to, vector a) { memcpy(to, &a, sizeof a); }

ALWAYS bool is_any(mask where)
{
    const bytes each = __builtin_convertvector(where, bytes);
    int64_t any = 0;
    memcpy(&any, &each, sizeof each);
    return any != 0;
}

/* pair_divide: q + e = (a + al) / (b + bl), to 2^-101 of it. */
ALWAYS void pair_divide(vector *q, vector *e, vector a, vector al, vector b, vector bl)
{
    const vector first = a / b;
    vector product, error;
    two_prod(&product, &error, first, b);
    const vector rest = ((a - product) - error) + (al - first * bl), step = rest / b;
    QUICK_TWO_SUM(*q, *e, first, step);
}

ALWAYS double add_up(vector a)
{
    double total = 0.0;
    for (int i = 0; i < LANES; i++) total += a[i];
    return total;
}

ALWAYS vector square_root(vector a)
{
    vector root;
    for (int i = 0; i < LANES; i++) root[i] = sqrt(a[i]);
    return root;
}

/* pair_root: r + e = the root of a + al. */
ALWAYS void pair_root(vector *r, vector *e, vector a, vector al)
{
    const vector root = square_root(a);
    vector product, error;
    two_prod(&product, &error, root, root);
    const vector rest = ((a - product) - error) + al;
    const vector step = choose(root > 0.0, rest / (2.0 * root), fill(0.0));
    QUICK_TWO_SUM(*r, *e, root, step);
}

/* distill: leave the sum of `count` numbers in the first `size`; returns where they have no room for all of it. */
ALWAYS mask distill(vector *values, int count, int size)
{
    mask left = {0};
    for (int pass = 0; pass < size && pass < count; pass++)
        for (int i = count - 1; i > 0; i--) TWO_SUM(values[i - 1], values[i], values[i - 1], values[i]);
    for (int i = size; i < count; i++) left |= values[i] != 0.0;
    for (int i = 0; i + 1 < size && i + 1 < count; i++) TWO_SUM(values[i], values[i + 1], values[i], values[i + 1]);
    return left;
}

/* `_add` of columns.py: add a term to numbers that are sums of doubles; `left` is where they have no room for it. */
ALWAYS void add(vector *numbers, int size, vector term, mask *left)
{
    for (int i = 0; i < size; i++) TWO_SUM(numbers[i], term, numbers[i], term);
    *left |= term != 0.0;
}

/* Of doubles that are no subnormal numbers: the e of 2^(e-1) <= |a| < 2^e, as frexp has it, and 2^e. */
ALWAYS mask find_exponent(vector a) { return (((mask)a >> 52) & 0x7ff) - 1022; }
ALWAYS vector make_power(mask e) { return (vector)((e + 1023) << 52); }

#endif
