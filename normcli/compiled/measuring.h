/* `measure_leaves`, `measure_short_leaves` and `measure_columns` of leaves.py and columns.py: exact sums, by other ways. */
#ifndef NORMCLI_MEASURING_H
#define NORMCLI_MEASURING_H

#include "loading.h"

/* The sums of one group so far: sums of doubles, not yet in order, about 0. */
struct sums {
    double sum[3], square[4];
    bool extreme;
};

ALWAYS void add_to_sum(struct sums *sums, double term)
{
    ADD(sums->sum, 3, term);
    sums->extreme |= term != 0.0;
}

ALWAYS void add_to_square(struct sums *sums, double term)
{
    ADD(sums->square, 4, term);
    sums->extreme |= term != 0.0;
}

/* The e of 2^e >= n. */
static int find_log(ptrdiff_t n)
{
    int e = 0;
    while (((ptrdiff_t)1 << e) < n) e++;
    return e;
}

/* Where numbers below 2^top, multiples of 2^unit, are cut so that sums of 2^log of them stay exact. The upper
 * parts of `levels` cuts are multiples of 2^grid[k]; what the last one leaves has to fit into a double too. */
struct grid {
    double sigma[2];
    bool fits;
};

static struct grid find_grid(int top, int unit, int log, int levels)
{
    struct grid grid;
    for (int k = 0; k < 2; k++) {
        const int cut = top + log - 51;
        if (k < levels) {
            grid.sigma[k] = 1.5 * power(cut + 52);
            top = cut - 1;
        } else {
            grid.sigma[k] = 0.0;
        }
    }
    grid.fits = top + log <= 52 + unit;
    return grid;
}

/* Doubles: x, x^2 and its rounding error are each cut `levels` times; 0 if the values are too far apart. */
ALWAYS bool measure_doubles_on_grids(
    const double *x, ptrdiff_t n, int top, int unit, bool need_sum, int levels, struct sums *sums)
{
    const int log = find_log(n);
    const struct grid of_x = find_grid(top, unit, log, levels);
    const struct grid of_p = find_grid(2 * top, 2 * unit + 52, log, levels);
    const struct grid of_e = find_grid(2 * top - 53, 2 * unit, log, levels);
    if (!(of_x.fits && of_p.fits && of_e.fits)) return false;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, p0 = 0.0, p1 = 0.0, p2 = 0.0, e0 = 0.0, e1 = 0.0, e2 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, p0, p1, p2, e0, e1, e2)
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = x[i], p = value * value;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
        const double e = __builtin_fma(value, value, -p);
#else
        const double c = SPLITTER * value, high = c - (c - value), low = value - high;
        const double e = ((high * high - p) + (high + high) * low) + low * low;
#endif
        if (need_sum) {
            const double t = (value + of_x.sigma[0]) - of_x.sigma[0], r = value - t;
            const double u = levels > 1 ? (r + of_x.sigma[1]) - of_x.sigma[1] : 0.0;
            s0 += t, s1 += levels > 1 ? u : r, s2 += levels > 1 ? r - u : 0.0;
        }
        const double t = (p + of_p.sigma[0]) - of_p.sigma[0], r = p - t;
        const double u = levels > 1 ? (r + of_p.sigma[1]) - of_p.sigma[1] : 0.0;
        p0 += t, p1 += levels > 1 ? u : r, p2 += levels > 1 ? r - u : 0.0;
        const double v = (e + of_e.sigma[0]) - of_e.sigma[0], w = e - v;
        const double z = levels > 1 ? (w + of_e.sigma[1]) - of_e.sigma[1] : 0.0;
        e0 += v, e1 += levels > 1 ? z : w, e2 += levels > 1 ? w - z : 0.0;
    }
    add_to_square(sums, p0), add_to_square(sums, p1);
    add_to_square(sums, e0), add_to_square(sums, e1);
    if (levels > 1) add_to_square(sums, p2), add_to_square(sums, e2);
    if (need_sum) add_to_sum(sums, s0), add_to_sum(sums, s1);
    if (need_sum && levels > 1) add_to_sum(sums, s2);
    return true;
}

/* `_HIGHEST` and `_LOWEST` of records.py, as biased exponents, and what no float64 exceeds. */
enum { HIGHEST = 1023 + 400, LOWEST = 1023 - 300, ENDLESS = 0x7ff };

static void measure_doubles(const double *x, ptrdiff_t n, bool need_sum, struct sums *sums)
{
    int64_t largest = 0, least = INT64_MAX;
#pragma omp simd reduction(max : largest) reduction(min : least)
    for (ptrdiff_t i = 0; i < n; i++) {
        const int64_t size = get_bits(x[i]) & INT64_MAX, other = size == 0 ? INT64_MAX : size;
        largest = size > largest ? size : largest;
        least = other < least ? other : least;
    }
    if (largest == 0) return;
    const int high = (int)(largest >> 52), low = (int)(least >> 52);
    if (high >= HIGHEST || low <= LOWEST) {
        sums->extreme = true;
        return;
    }
    const int top = high - 1022, unit = low - 1075;
    if (measure_doubles_on_grids(x, n, top, unit, need_sum, 1, sums)) return;
    if (measure_doubles_on_grids(x, n, top, unit, need_sum, 2, sums)) return;
    sums->extreme = true;
}

/* Floats: their squares are doubles. `memory` has room for a leaf of doubles. */
static void measure_floats(const float *x, ptrdiff_t n, bool need_sum, struct sums *sums, double *memory)
{
    uint32_t largest = 0, least = UINT32_MAX;
#pragma omp simd reduction(max : largest) reduction(min : least)
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t size = get_float_bits(x[i]) & 0x7fffffffu, other = size - 1; /* of 0, the largest */
        largest = size > largest ? size : largest;
        least = other < least ? other : least;
    }
    if (largest == 0) return;
    if (largest >= 0x7f800000u) {
        sums->extreme = true;
        return;
    }
    const int high = (int)(largest >> 23), low = (int)((least + 1) >> 23), log = find_log(n);
    const int top = (high ? high : 1) - 126, unit = (low ? low : 1) - 150;
    const struct grid of_p = find_grid(2 * top, 2 * unit, log, 1);
    if (top + log > 53 + unit || !of_p.fits) {
        for (ptrdiff_t i = 0; i < n; i++) memory[i] = (double)x[i];
        measure_doubles(memory, n, need_sum, sums);
        return;
    }
    double sum = 0.0, p0 = 0.0, p1 = 0.0;
    const double sigma = of_p.sigma[0];
#pragma omp simd reduction(+ : sum, p0, p1)
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = (double)x[i], p = value * value, t = (p + sigma) - sigma;
        sum += value, p0 += t, p1 += p - t;
    }
    if (need_sum) add_to_sum(sums, sum);
    add_to_square(sums, p0), add_to_square(sums, p1);
}

/* Measures one group of any length. */
static struct sums measure_group(const struct view *in, const char *group, bool need_sum, void *memory)
{
    struct sums sums = {{0.0}, {0.0}, false};
    for (ptrdiff_t part = 0; part < in->parts && !sums.extreme; part++, group += in->part_stride) {
        for (ptrdiff_t i = 0; i < in->shape[2] && !sums.extreme; i += LEAF) {
            const ptrdiff_t n = in->shape[2] - i < LEAF ? in->shape[2] - i : LEAF;
            const void *x = load_values(in, group + i * in->strides[2], in->strides[2], n, memory);
            double *more = (double *)memory + LEAF;
            if (in->kind == F64) measure_doubles(x, n, need_sum, &sums);
            else measure_floats(x, n, need_sum, &sums, more);
        }
    }
    return sums;
}

/* Measures groups of n values that lie side by side: value i of group g is x[i * BATCH + g]. */
ALWAYS void measure_lanes(const double *x, ptrdiff_t n, bool need_sum, bool doubles, bool few, struct batch *batch, int g)
{
    const int sums = doubles ? 3 : 2, squares = doubles ? 4 : few ? 2 : 3;
    vector sum[3], square[4], largest = fill(0.0), least = fill(0x1p1000);
    mask left;
    memcpy(&left, batch->left + g, sizeof left);
    for (int k = 0; k < 3; k++) sum[k] = load(batch->sum[k] + g);
    for (int k = 0; k < 4; k++) square[k] = load(batch->square[k] + g);
    for (ptrdiff_t i = 0; i < n; i++) {
        const vector value = load(x + i * BATCH + g), size = absolute(value);
        vector p, e;
        largest = choose(size > largest, size, largest);
        if (need_sum) {
            vector term = value;
            ADD(sum, sums, term);
            left |= term != 0.0;
        }
        if (doubles) {
            least = choose((size < least) & (size != 0.0), size, least);
            TWO_PROD(p, e, value, value);
            ADD(square, squares, e);
            left |= e != 0.0;
        } else {
            p = value * value;
        }
        left |= ~(p < 0x1p800);
        ADD(square, squares, p);
        left |= p != 0.0;
    }
    if (doubles) left |= (least < 0x1p-300) & (largest > 0.0);
    for (int k = 0; k < 3; k++) put(batch->sum[k] + g, sum[k]);
    for (int k = 0; k < 4; k++) put(batch->square[k] + g, square[k]);
    memcpy(batch->left + g, &left, sizeof left);
}

static void measure_side_by_side(const double *x, ptrdiff_t n, bool need_sum, enum kind kind, bool few, struct batch *batch, int count)
{
    for (int g = 0; g < count; g += LANES) {
        if (kind == F64) measure_lanes(x, n, need_sum, true, few, batch, g);
        else if (few) measure_lanes(x, n, need_sum, false, true, batch, g);
        else measure_lanes(x, n, need_sum, false, false, batch, g);
    }
}

static void forget_sums(struct batch *batch)
{
    memset(batch->sum, 0, sizeof batch->sum);
    memset(batch->square, 0, sizeof batch->square);
    memset(batch->left, 0, sizeof batch->left);
}

/* Lays values i to i + n of groups side by side, as doubles. */
static void turn(const struct view *in, char *const *groups, int count, ptrdiff_t i, ptrdiff_t n, double *values, void *memory)
{
    const bool is_double = in->kind == F64;
    if (count < BATCH) memset(values, 0, (size_t)(n * BATCH) * sizeof *values);
    if (n > 1 && in->strides[2] != SIZES[in->kind] && in->strides[1] == SIZES[in->kind] && groups[count - 1] - groups[0] == (count - 1) * in->strides[1]) {
        for (ptrdiff_t k = 0; k < n; k++) { /* the values of neighbours are neighbours */
            const void *x = load_values(in, groups[0] + (i + k) * in->strides[2], in->strides[1], count, memory);
            for (int g = 0; g < count; g++) values[k * BATCH + g] = get(x, is_double ? F64 : F32, g);
        }
        return;
    }
    for (int g = 0; g < count; g++) {
        const void *x = load_values(in, groups[g] + i * in->strides[2], in->strides[2], n, memory);
        if (is_double)
            for (ptrdiff_t k = 0; k < n; k++) values[k * BATCH + g] = ((const double *)x)[k];
        else
            for (ptrdiff_t k = 0; k < n; k++) values[k * BATCH + g] = (double)((const float *)x)[k];
    }
}

#endif
