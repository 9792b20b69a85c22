/* Arithmetic without rounding: what normcli/numerics/pairs.py does, for doubles and for vectors of them alike. */
#ifndef NORMCLI_EXACT_H
#define NORMCLI_EXACT_H

#include "kernel.h"

#define ALWAYS static inline __attribute__((always_inline))

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

/* two_prod: p + e = a * b. */
#define TWO_PROD(p, e, a, b)                                                                 \
    do {                                                                                     \
        const __typeof__(a) a_ = (a), b_ = (b), p_ = a_ * b_, c_ = SPLITTER * a_, d_ = SPLITTER * b_; \
        const __typeof__(a) ah_ = c_ - (c_ - a_), al_ = a_ - ah_;                            \
        const __typeof__(a) bh_ = d_ - (d_ - b_), bl_ = b_ - bh_;                            \
        (e) = ((ah_ * bh_ - p_) + ah_ * bl_ + al_ * bh_) + al_ * bl_, (p) = p_;              \
    } while (0)

/* pair_divide: q + e = (a + al) / (b + bl), to 2^-101 of it. */
#define PAIR_DIVIDE(q, e, a, al, b, bl)                                            \
    do {                                                                           \
        const __typeof__(a) q_ = (a) / (b);                                        \
        __typeof__((a) + (b)) product_, error_;                                            \
        TWO_PROD(product_, error_, q_, b);                                         \
        const __typeof__(a) rest_ = (((a) - product_) - error_) + ((al) - q_ * (bl)); \
        const __typeof__(a) step_ = rest_ / (b);                                   \
        QUICK_TWO_SUM(q, e, q_, step_);                                            \
    } while (0)

ALWAYS vector fill(double value) { return (vector){0} + value; }
ALWAYS vector choose(mask where, vector a, vector b) { return (vector)((where & (mask)a) | (~where & (mask)b)); }
ALWAYS vector absolute(vector a) { return (vector)((mask)a & INT64_MAX); }
ALWAYS vector lesser(vector a, vector b) { return choose(a < b, a, b); }

ALWAYS vector load(const double *from)
{
    vector a;
    memcpy(&a, from, sizeof a);
    return a;
}

ALWAYS void put(double *to, vector a) { memcpy(to, &a, sizeof a); }

ALWAYS bool is_any(mask where)
{
    int64_t any = 0;
    for (int i = 0; i < LANES; i++) any |= where[i];
    return any != 0;
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
    TWO_PROD(product, error, root, root);
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

/* `_add` of columns.py: add a term to numbers that are sums of doubles; returns what they have no room for. */
#define ADD(numbers, size, term)                                                          \
    for (int add_ = 0; add_ < (size); add_++) TWO_SUM((numbers)[add_], term, (numbers)[add_], term)

/* Of doubles that are no subnormal numbers: the e of 2^(e-1) <= |a| < 2^e, as frexp has it, and 2^e. */
ALWAYS mask find_exponent(vector a) { return (((mask)a >> 52) & 0x7ff) - 1022; }
ALWAYS vector make_power(mask e) { return (vector)((e + 1023) << 52); }
ALWAYS double power(int64_t e)
{
    const int64_t bits = (e + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

ALWAYS int64_t get_bits(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

ALWAYS double from_bits(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
