/* Values of any kind to floats or doubles, and results back, each rounded once. */
#pragma once

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "exact.h"

/* A float16: its exponent and fraction are those of a float that is 2^-112 as large, which a product mends. */
ALWAYS float widen_half(uint16_t half)
{
    const int32_t same = (int16_t)half * (1 << 13) & ~0x70000000;
    const uint32_t above = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    return make_float(get_float_bits(make_float((uint32_t)same) * 0x1p112f) | above);
}

/* As `round_to_odd` of rounding.py, but to 13 bits: what is then rounded to two bits fewer, or more, is rounded once.
 * Of more, a float that is a subnormal number would lose some before. */
ALWAYS uint32_t round_to_odd(double value)
{
    const int64_t rest = (1LL << 40) - 1, bits = get_bits(value);
    return get_float_bits((float)from_bits((bits | ((bits & rest) + rest)) & ~rest));
}

/* A bfloat16 has the upper bits of a float, a float16 others of one that is 2^-112 as large, as above; both to nearest. */
ALWAYS uint16_t narrow(double value, enum kind kind)
{
    const uint32_t odd = round_to_odd(value), size = odd & 0x7fffffffu, endless = 0x47800000u, cut = kind == F16 ? 13 : 16;
    const float capped = make_float(size < endless ? size : endless);
    const uint32_t bits = kind == F16 ? get_float_bits(capped * 0x1p-112f) : size;
    const uint32_t rounded = (bits + (1u << (cut - 1)) - 1u + ((bits >> cut) & 1u)) >> cut;
    return (uint16_t)((size <= 0x7f800000u ? rounded : kind == F16 ? 0x7e00u : 0x7fc0u) | ((odd >> 16) & 0x8000u));
}

/* Whether a number of a kind shorter than doubles may have two roundings within an error: whether the middle of two lies
 * there. Below the least normal number, they are as far apart as above it. */
ALWAYS int64_t has_middle(double value, double error, enum kind kind)
{
    const int cut = kind == F16 ? 42 : kind == BF16 ? 45 : 29;
    const double size = fabs(value), least = kind == F16 ? 0x1p-14 : 0x1p-126, raised = size < least ? least : 0.0;
    const int64_t half = 1LL << (cut - 1), low = get_bits(size - error + raised), high = get_bits(size + error + raised);
    return (low - 1 + half) >> cut != (high + 1 + half) >> cut;
}

/* The same where the error is 2^-49 of the value, which is at most 16 units of its last place. */
ALWAYS int64_t is_near_middle(double value, enum kind kind)
{
    const int cut = kind == F16 ? 42 : kind == BF16 ? 45 : 29;
    const double size = fabs(value), least = kind == F16 ? 0x1p-14 : 0x1p-126, raised = size + (size < least ? least : 0.0);
    return ((get_bits(raised) + (1LL << (cut - 1)) + 16) & ((1LL << cut) - 1)) <= 32;
}

ALWAYS double fetch(const void *from, enum kind kind)
{
    const uint16_t half = kind < F16 ? 0 : *(const uint16_t *)from;
    if (kind == F64) return *(const double *)from;
    return kind == F32 ? *(const float *)from : kind == F16 ? widen_half(half) : make_float((uint32_t)half << 16);
}

ALWAYS void store(void *to, enum kind kind, double value)
{
    if (kind == F64) *(double *)to = value;
    else if (kind == F32) *(float *)to = (float)value;
    else *(uint16_t *)to = narrow(value, kind);
}

/* Do the same for any kind of numbers, which is then known to the compiler. */
#define WITH_KIND(name, which, ...)                                 \
    switch (which) {                                                \
    case F64: { const enum kind name = F64; __VA_ARGS__; break; }   \
    case F32: { const enum kind name = F32; __VA_ARGS__; break; }   \
    case F16: { const enum kind name = F16; __VA_ARGS__; break; }   \
    case BF16: { const enum kind name = BF16; __VA_ARGS__; break; } \
    }

/* For values i of n, from some on, of a kind k that lie `step` bytes from each other; side by side, that is known. */
#define FOR_EACH(which, step, first, ...)                                                        \
    WITH_KIND(k, which, WITH(dense, step == SIZES[k],                                            \
        for (ptrdiff_t i = first, by = dense ? SIZES[k] : step; i < n; i++) { __VA_ARGS__; }))

/* Put n values that lie `step` bytes from each other into memory, as floats, or as doubles if they are. */
static void load_values(const char *from, enum kind kind, ptrdiff_t step, ptrdiff_t n, void *to)
{
    ptrdiff_t done = 0;
#ifdef __F16C__
    for (; kind == F16 && step == SIZES[F16] && done + 8 <= n; done += 8)
        _mm256_storeu_ps((float *)to + done, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + done * SIZES[F16]))));
#endif
    FOR_EACH(kind, step, done,
        store((char *)to + i * (k == F64 ? 8 : 4), k == F64 ? F64 : F32, fetch(from + i * by, k)))
}

/* Whether values that lie `step` bytes from each other are as load_values leaves them. */
static bool is_loaded(enum kind kind, ptrdiff_t step) { return kind <= F32 && step == SIZES[kind]; }

/* Write doubles to places that lie `step` bytes from each other. */
static void store_values(char *to, enum kind kind, ptrdiff_t step, const double *values, ptrdiff_t n)
{
    FOR_EACH(kind, step, 0, store(to + i * by, k, values[i]))
}
