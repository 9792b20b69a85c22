/* Values of any kind to floats or doubles, and results back, each rounded once. */
#ifndef NORMCLI_LOADING_H
#define NORMCLI_LOADING_H

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "exact.h"

/* A float16: its exponent and fraction are those of a float that is 2^-112 as large, which a product mends. */
ALWAYS float widen_half(uint16_t half)
{
    const uint32_t size = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t above = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    const uint32_t bits = get_float_bits(make_float(size) * 0x1p112f) | above;
    return make_float(bits | (uint32_t)(half & 0x8000) << 16);
}

/* As `round_to_odd` of rounding.py, but to 13 bits: what is then rounded to two bits fewer, or more, is rounded once.
 * Of more, a float that is a subnormal number would lose some before. */
ALWAYS uint32_t round_to_odd(double value)
{
    const int64_t rest = (1LL << 40) - 1, bits = get_bits(value);
    return get_float_bits((float)from_bits((bits | ((bits & rest) + rest)) & ~rest));
}

/* Of a float rounded to odd; below 2^-14, adding 0.5 rounds to multiples of 2^-24. */
ALWAYS uint16_t narrow_to_half(uint32_t odd)
{
    const uint32_t size = odd & 0x7fffffffu, least = 0x47800000u;
    const uint32_t capped = size < least ? size : least;
    const uint32_t normal = (capped + 0xfffu + ((capped >> 13) & 1u) - (112u << 23)) >> 13;
    const uint32_t small = get_float_bits(make_float(capped) + 0.5f) - get_float_bits(0.5f);
    const uint32_t bits = size > 0x7f800000u ? 0x7e00u : capped < 0x38800000u ? small : normal;
    return (uint16_t)(bits | ((odd >> 16) & 0x8000u));
}

ALWAYS uint16_t narrow_to_bfloat16(double value)
{
    const uint32_t bits = round_to_odd(value), rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded >> 16);
}

ALWAYS float widen(const void *from, enum kind kind)
{
    const uint16_t *half = from;
    return kind == F32 ? *(const float *)from : kind == F16 ? widen_half(*half) : make_float((uint32_t)*half << 16);
}

ALWAYS void store(void *to, enum kind kind, double value)
{
    if (kind == F64) *(double *)to = value;
    else if (kind == F32) *(float *)to = (float)value;
    else *(uint16_t *)to = kind == F16 ? narrow_to_half(round_to_odd(value)) : narrow_to_bfloat16(value);
}

/* Do the same for any kind of numbers, which is then known to the compiler. */
#define WITH_KIND(name, which, ...)                                 \
    switch (which) {                                                \
    case F64: { const enum kind name = F64; __VA_ARGS__; break; }   \
    case F32: { const enum kind name = F32; __VA_ARGS__; break; }   \
    case F16: { const enum kind name = F16; __VA_ARGS__; break; }   \
    case BF16: { const enum kind name = BF16; __VA_ARGS__; break; } \
    }

/* For values i of n of a kind k that lie `step` bytes from each other; `done` are done if they are float16s side by side. */
#define FOR_EACH(which, step, done, ...)                                                                  \
    WITH_KIND(k, which, WITH(dense, step == SIZES[k],                                                     \
        for (ptrdiff_t i = k == F16 && dense ? done : 0, by = dense ? SIZES[k] : step; i < n; i++) {      \
            __VA_ARGS__;                                                                                  \
        }))

/* What some processors do with eight float16s at once: return how many of n are done. */
ALWAYS ptrdiff_t widen_halves(const uint16_t *from, ptrdiff_t n, float *to)
{
    ptrdiff_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
#endif
    return (void)from, (void)n, (void)to, i;
}

ALWAYS ptrdiff_t narrow_to_halves(const double *values, ptrdiff_t n, uint16_t *to)
{
    ptrdiff_t i = 0;
#ifdef __F16C__
    for (float odd[8]; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; k++) odd[k] = make_float(round_to_odd(values[i + k]));
        _mm_storeu_si128((void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(odd), 0));
    }
#endif
    return (void)values, (void)n, (void)to, i;
}

/* Put n values that lie `step` bytes from each other into memory, as floats, or as doubles if they are. */
static void load_values(const char *from, enum kind kind, ptrdiff_t step, ptrdiff_t n, void *to)
{
    FOR_EACH(kind, step, widen_halves((const void *)from, n, to),
        if (k == F64) ((double *)to)[i] = *(const double *)(const void *)(from + i * by);
        else ((float *)to)[i] = widen(from + i * by, k))
}

/* Whether values that lie `step` bytes from each other are as load_values leaves them. */
static bool is_loaded(enum kind kind, ptrdiff_t step) { return kind <= F32 && step == SIZES[kind]; }

/* Write doubles to places that lie `step` bytes from each other. */
static void store_values(char *to, enum kind kind, ptrdiff_t step, const double *values, ptrdiff_t n)
{
    FOR_EACH(kind, step, narrow_to_halves(values, n, (void *)to), store(to + i * by, k, values[i]))
}

#endif
