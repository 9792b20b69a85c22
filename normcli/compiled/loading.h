/* Values of any kind to floats or doubles, and results back, each rounded once. */
#ifndef NORMCLI_LOADING_H
#define NORMCLI_LOADING_H

#include "exact.h"

ALWAYS double get(const void *from, enum kind kind, ptrdiff_t i)
{
    return kind == F64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

/* A float16: its exponent and fraction are those of a float that is 2^-112 as large, which a product mends. */
ALWAYS float widen_half(uint16_t half)
{
    const uint32_t size = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t above = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    const uint32_t bits = get_float_bits(make_float(size) * 0x1p112f) | above;
    return make_float(bits | (uint32_t)(half & 0x8000) << 16);
}

/* A double as float16: a multiple of 2^-24, or of 2^-10 of its power of two, that is then put together. */
ALWAYS uint16_t narrow_to_half(double value)
{
    const double size = fabs(value);
    const double unit = from_bits((get_bits(size < 0x1p-14 ? 0x1p-14 : size) & (0x7ffLL << 52)) - (10LL << 52));
    const double magic = 0x1.8p52 * unit;
    const double nearest = (size + magic) - magic;
    const double normal = nearest < 0x1p-14 ? 0x1p-14 : nearest;
    const int64_t exponent = (get_bits(normal) >> 52) - 1023 + 15;
    const int64_t fraction = (get_bits(normal) >> 42) & 0x3ff;
    int64_t bits = exponent << 10 | fraction;
    bits = nearest < 0x1p-14 ? (int64_t)(nearest * 0x1p24) : bits;
    bits = size >= 65520.0 ? 0x7c00 : bits;
    bits = size != size ? 0x7e00 : bits;
    return (uint16_t)(bits | ((get_bits(value) >> 48) & 0x8000));
}

/* As `round_to_odd` of rounding.py, and from there to bfloat16. */
ALWAYS uint16_t narrow_to_bfloat16(double value)
{
    const float nearest = (float)value;
    const double back = (double)nearest;
    uint32_t bits = get_float_bits(nearest);
    bits -= fabs(back) > fabs(value) ? 1u : 0u;
    bits |= back != value ? 1u : 0u;
    const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (uint16_t)(value != value ? 0x7fc0u : rounded >> 16);
}

/* For values k of n that lie `step` bytes from each other. */
#define EACH(type, place, expression)                                         \
    for (ptrdiff_t k = 0; k < n; k++) {                                       \
        type *const at = (type *)(void *)((place) + k * step);                \
        expression;                                                           \
    }                                                                         \
    break

/* Return n values that lie `step` bytes from each other as floats, or as doubles if they are: in `memory` unless
 * they lie so. */
static const void *load_values(const struct view *in, const char *from, ptrdiff_t step, ptrdiff_t n, void *memory)
{
    float *floats = memory;
    double *doubles = memory;
    if (step == SIZES[in->kind] && (in->kind == F64 || in->kind == F32)) return from;
    switch (in->kind) {
    case F64: EACH(const double, from, doubles[k] = *at);
    case F32: EACH(const float, from, floats[k] = *at);
    case F16: EACH(const uint16_t, from, floats[k] = widen_half(*at));
    case BF16: EACH(const uint16_t, from, floats[k] = make_float((uint32_t)*at << 16));
    }
    return memory;
}

/* Write doubles to places that lie `step` bytes from each other. */
static void store_values(char *to, enum kind kind, ptrdiff_t step, const double *values, ptrdiff_t n)
{
    switch (kind) {
    case F64: EACH(double, to, *at = values[k]);
    case F32: EACH(float, to, *at = (float)values[k]);
    case F16: EACH(uint16_t, to, *at = narrow_to_half(values[k]));
    case BF16: EACH(uint16_t, to, *at = narrow_to_bfloat16(values[k]));
    }
}

#endif
