/* Arithmetic without rounding, on vectors of doubles: what normcli/numerics/pairs.py does. */
#pragma once

#include "kernel.h"

#if LEVEL >= 3 || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAS_FMA
#endif

#define ALWAYS static inline __attribute__((always_inline))

/* Compile statements for either value of a condition; in them, `name` is that value, as a constant. */
#define WITH(name, condition, ...) \
    if (condition) { enum { name = true }; __VA_ARGS__; } else { enum { name = false }; __VA_ARGS__; }

typedef double vector __attribute__((vector_size(8 * LANES)));
typedef int64_t mask __attribute__((vector_size(8 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef int8_t bytes __attribute__((vector_size(LANES)));

ALWAYS int64_t get_bits(double value) { return (union { double from; int64_t to; }){value}.to; }
ALWAYS double from_bits(int64_t bits) { return (union { int64_t from; double to; }){bits}.to; }
ALWAYS uint32_t get_float_bits(float value) { return (union { float from; uint32_t to; }){value}.to; }
ALWAYS float make_float(uint32_t bits) { return (union { uint32_t from; float to; }){bits}.to; }

ALWAYS vector fill(double value) { return (vector){0} + value; }
ALWAYS vector choose(mask where, vector a, vector b) { return (vector)((where & (mask)a) | (~where & (mask)b)); }
ALWAYS vector absolute(vector a) { return (vector)((mask)a & INT64_MAX); }
ALWAYS void put(double *to, vector a) { memcpy(to, &a, sizeof a); }

/* A vector that lies anywhere in memory. */
#define LOAD(type, from) (((const struct { type a; } __attribute__((packed, may_alias)) *)(from))->a)

ALWAYS bool is_any(mask where)
{
    const bytes each = __builtin_convertvector(where, bytes);
    int64_t any = 0;
    memcpy(&any, &each, sizeof each);
    return any != 0;
}

/* two_sum: s + e = a + b. */
ALWAYS void two_sum(vector *s, vector *e, vector a, vector b)
{
    const vector sum = a + b, r = sum - a;
    *e = (a - (sum - r)) + (b - r), *s = sum;
}

/* quick_two_sum: s + e = a + b where |a| >= |b| or a = 0. */
ALWAYS void quick_two_sum(vector *s, vector *e, vector a, vector b)
{
    const vector sum = a + b;
    *e = b - (sum - a), *s = sum;
}

#define SPLITTER 0x8000001p0

/* Return a * b - p, exactly, for p = a * b rounded, where nothing over- or underflows. */
ALWAYS double find_rest(double a, double b, double p)
{
#ifdef HAS_FMA
    return __builtin_fma(a, b, -p);
#else
    const double c = SPLITTER * a, d = SPLITTER * b, ah = c - (c - a), bh = d - (d - b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* Return a * b + c, rounded once, of a product that is a double. */
ALWAYS vector add_product(vector a, vector b, vector c)
{
#ifdef HAS_FMA
    for (int i = 0; i < LANES; i++) c[i] = __builtin_fma(a[i], b[i], c[i]);
    return c;
#else
    return a * b + c;
#endif
}

/* Return a + b, added by the units of the processor that multiply: those that add are busier. */
ALWAYS vector add_aside(vector a, vector b) { return add_product(b, fill(1.0), a); }

ALWAYS vector widen(floats a)
{
#if LEVEL == 4
    return (vector)_mm512_cvtps_pd((__m256)a);
#else
    return __builtin_convertvector(a, vector);
#endif
}

/* two_prod: p + e = a * b. */
ALWAYS void two_prod(vector *p, vector *e, vector a, vector b)
{
    const vector product = a * b;
    for (int i = 0; i < LANES; i++) (*e)[i] = find_rest(a[i], b[i], product[i]);
    *p = product;
}

/* Return (a + al) - q * b, where q is a / b rounded, or q = b is the root of a rounded: a - q * b is then a double. */
ALWAYS vector find_remainder(vector a, vector al, vector q, vector b)
{
    vector product, error;
    two_prod(&product, &error, q, b);
    return ((a - product) - error) + al;
}

/* pair_divide: q + e = (a + al) / (b + bl), to 2^-101 of it. */
ALWAYS void pair_divide(vector *q, vector *e, vector a, vector al, vector b, vector bl)
{
    const vector first = a / b, rest = find_remainder(a, al - first * bl, first, b);
    quick_two_sum(q, e, first, rest / b);
}

/* pair_root: r + e = the root of a + al. */
ALWAYS void pair_root(vector *r, vector *e, vector a, vector al)
{
    vector root;
    for (int i = 0; i < LANES; i++) root[i] = sqrt(a[i]);
    const vector rest = find_remainder(a, al, root, root);
    quick_two_sum(r, e, root, choose(root > 0.0, rest / (2.0 * root), fill(0.0)));
}

/* distill: leave the sum of `count` numbers in the first `size`; returns where they have no room for all of it. */
ALWAYS mask distill(vector *values, int count, int size)
{
    mask left = {0};
    for (int pass = 0; pass < size && pass < count; pass++)
        for (int i = count - 1; i > 0; i--) two_sum(&values[i - 1], &values[i], values[i - 1], values[i]);
    for (int i = size; i < count; i++) left |= values[i] != 0.0;
    for (int i = 0; i + 1 < size && i + 1 < count; i++) two_sum(&values[i], &values[i + 1], values[i], values[i + 1]);
    return left;
}

/* Add a term to a sum of `size` doubles; `left` is set where these have no room for it. */
ALWAYS void add(vector *numbers, int size, vector term, mask *left)
{
    for (int i = 0; i < size; i++) two_sum(&numbers[i], &term, numbers[i], term);
    *left |= term != 0.0;
}

/* 2^e. */
ALWAYS vector make_power(mask e) { return (vector)((e + 1023) << 52); }
