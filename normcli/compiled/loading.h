/* Values of any kind to floats or doubles, and results back, each rounded once. */
#pragma once

#include "exact.h"

/* A float16: its exponent and fraction are those of a float that is 2^-112 as large, which a product mends. */
ALWAYS float widen_half(uint16_t half)
{
    const int32_t same = (int16_t)half * (1 << 13) & ~0x70000000;
    const uint32_t above = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    return make_float(get_float_bits(make_float((uint32_t)same) * 0x1p112f) | above);
}

/* Round to odd as `round_to_odd` of rounding.py does, but to 13 bits: a second rounding, to 11 bits or fewer, then gives what
 * one rounding would. With more bits, a float that is subnormal would be rounded in between. */
ALWAYS uint32_t round_to_odd(double value)
{
    const int64_t rest = (1LL << 40) - 1, bits = get_bits(value);
    return get_float_bits((float)from_bits((bits | ((bits & rest) + rest)) & ~rest));
}

/* Round to a bfloat16, which is the upper bits of a float, or to a float16, which is bits of a float that is 2^-112 as large
 * (see `widen_half`): to nearest, ties to even. */
ALWAYS uint16_t narrow(double value, enum kind kind)
{
    const uint32_t odd = round_to_odd(value), size = odd & 0x7fffffffu, endless = 0x47800000u, cut = kind == F16 ? 13 : 16;
    const float capped = make_float(size < endless ? size : endless);
    const uint32_t bits = kind == F16 ? get_float_bits(capped * 0x1p-112f) : size;
    const uint32_t rounded = (bits + (1u << (cut - 1)) - 1u + ((bits >> cut) & 1u)) >> cut;
    return (uint16_t)((size <= 0x7f800000u ? rounded : kind == F16 ? 0x7e00u : 0x7fc0u) | ((odd >> 16) & 0x8000u));
}

/* Whether a number that is known to within an error may have two roundings to a kind shorter than doubles: whether the middle
 * between two numbers of that kind lies there. Subnormal numbers are as far apart as the least normal ones. */
ALWAYS int64_t has_middle(double value, double error, enum kind kind)
{
    const int cut = kind == F16 ? 42 : kind == BF16 ? 45 : 29;
    const double size = fabs(value), least = kind == F16 ? 0x1p-14 : 0x1p-126, raised = size < least ? least : 0.0;
    const int64_t half = 1LL << (cut - 1), low = get_bits(size - error + raised), high = get_bits(size + error + raised);
    return (low - 1 + half) >> cut != (high + 1 + half) >> cut;
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

/* Compile statements for each kind of numbers; in them, `name` is the kind, as a constant. */
#define WITH_KIND(name, which, ...)                                 \
    switch (which) {                                                \
    case F64: { const enum kind name = F64; __VA_ARGS__; break; }   \
    case F32: { const enum kind name = F32; __VA_ARGS__; break; }   \
    case F16: { const enum kind name = F16; __VA_ARGS__; break; }   \
    case BF16: { const enum kind name = BF16; __VA_ARGS__; break; } \
    }

/* For values i of n, from `first` on, of kind k, that lie `step` bytes from each other; side by side, `by` is a constant. */
#define FOR_EACH(which, step, first, ...)                                                        \
    WITH_KIND(k, which, WITH(dense, step == SIZES[k],                                            \
        for (ptrdiff_t i = first, by = dense ? SIZES[k] : step; i < n; i++) { __VA_ARGS__; }))

/* Whether values that lie `step` bytes from each other are as load_values leaves them. */
static bool is_loaded(enum kind kind, ptrdiff_t step) { return kind <= F32 && step == SIZES[kind]; }

/* Write numbers that lie side by side, as doubles or as the kind that is written, to places `step` bytes from each other. */
static void store_values(char *to, enum kind kind, ptrdiff_t step, const void *values, bool doubles, ptrdiff_t n)
{
    const char *from = values;
    FOR_EACH(kind, step, 0,
        if (doubles) store(to + i * by, k, fetch(from + i * 8, F64));
        else memcpy(to + i * by, from + i * SIZES[k], (size_t)SIZES[k]))
}

/* As many floats as two vectors have doubles, and as many numbers of 16 bits. */
enum { WIDTH = 2 * LANES };
typedef float wide __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t wide_bits __attribute__((vector_size(4 * WIDTH)));
typedef uint16_t halves __attribute__((vector_size(2 * WIDTH)));

ALWAYS wide repeat(float value) { return value - (wide){0}; } /* -0 stays */
ALWAYS wide find_sizes(wide a) { return (wide)((wide_bits)a & 0x7fffffffu); }

/* a * b + c, rounded once or twice. */
ALWAYS wide multiply_and_add(wide a, wide b, wide c)
{
#if LEVEL == 4
    return (wide)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif LEVEL == 3
    return (wide)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* Values that lie side by side as floats. */
ALWAYS wide load_wide(const char *from, enum kind kind)
{
    if (kind == F32) return LOAD(wide, from);
    const halves h = LOAD(halves, from);
    if (kind == BF16) return (wide)(__builtin_convertvector(h, wide_bits) << 16);
#if LEVEL == 4
    return (wide)_mm512_cvtph_ps((__m256i)h);
#elif LEVEL == 3
    return (wide)_mm256_cvtph_ps((__m128i)h);
#else
    const wide_bits bits = __builtin_convertvector(h, wide_bits), endless = (wide_bits)((bits & 0x7c00u) == 0x7c00u);
    const wide same = (wide)((bits & 0x7fffu) << 13 | (bits & 0x8000u) << 16) * 0x1p112f; /* as `widen_half` */
    return (wide)((wide_bits)same | (endless & 0x7f800000u));
#endif
}

/* Round floats to float16, to nearest. Without instructions for that, middles go `up` or down, not to even: floats that became
 * subnormal may have been rounded to a middle. */
ALWAYS halves narrow_to_float16(wide a, bool up)
{
    (void)up;
#if LEVEL == 4
    return (halves)_mm512_cvtps_ph((__m512)a, 0);
#elif LEVEL == 3
    return (halves)_mm256_cvtps_ph((__m256)a, 0);
#else
    const wide_bits size = (wide_bits)find_sizes(a), fits = (wide_bits)(size < 0x47800000u); /* as `narrow` */
    const wide_bits bits = (wide_bits)((wide)((size & fits) | (0x47800000u & ~fits)) * 0x1p-112f);
    const wide_bits rounded = (bits + (up ? 0x1000u : 0xfffu)) >> 13, sign = ((wide_bits)a >> 16) & 0x8000u;
    return __builtin_convertvector(rounded | sign, halves);
#endif
}

/* Put n values that lie `step` bytes from each other into memory, as floats, or as doubles if they are. */
static void load_values(const char *from, enum kind kind, ptrdiff_t step, ptrdiff_t n, void *to)
{
    ptrdiff_t done = 0;
    for (; kind == F16 && step == SIZES[F16] && done + WIDTH <= n; done += WIDTH) {
        const wide values = load_wide(from + done * SIZES[F16], F16);
        memcpy((float *)to + done, &values, sizeof values);
    }
    FOR_EACH(kind, step, done,
        store((char *)to + i * (k == F64 ? 8 : 4), k == F64 ? F64 : F32, fetch(from + i * by, k)))
}

/* Narrow both ends of what numbers may be, the one that is nearer to 0 and the other, of bfloat16 middles away from each
 * other; a bit for each that is not decided: these become different, or NaN. */
ALWAYS halves narrow_ends(wide near, wide far, enum kind kind, uint32_t *undecided)
{
    const wide_bits below = (wide_bits)near + 0x7fffu, above = (wide_bits)far + 0x8000u;
#if LEVEL == 3
    if (kind == BF16) { /* compared as they are: to narrow them takes several instructions */
        const wide_bits same = (wide_bits)(((below ^ above) >> 16) == 0) & (wide_bits)(near == near);
        *undecided = 0xff ^ (uint32_t)_mm256_movemask_ps((__m256)same);
        return __builtin_convertvector(below >> 16, halves);
    }
#endif
    const halves low = kind == BF16 ? __builtin_convertvector(below >> 16, halves) : narrow_to_float16(near, false);
    const halves high = kind == BF16 ? __builtin_convertvector(above >> 16, halves) : narrow_to_float16(far, true);
#if LEVEL == 4
    *undecided = _mm256_cmpneq_epu16_mask((__m256i)low, (__m256i)high);
    *undecided |= _mm512_cmp_ps_mask((__m512)near, (__m512)near, _CMP_UNORD_Q);
#else
    const halves each = (low ^ high) | __builtin_convertvector((wide_bits)(near != near), halves);
    uint64_t parts[(LANES + 1) / 2] = {0}, any = 0;
    memcpy(parts, &each, sizeof each);
    for (int k = 0; k < (LANES + 1) / 2; k++) any |= parts[k];
    *undecided = 0;
    for (int k = 0; any && k < WIDTH; k++) *undecided |= (uint32_t)(each[k] != 0) << k;
#endif
    return low;
}
