/* `measure_leaves`, `measure_short_leaves` and `measure_columns` of leaves.py and columns.py: exact sums, by other ways. */
#ifndef NORMCLI_MEASURING_H
#define NORMCLI_MEASURING_H

#include "loading.h"

/* The sums of LANES groups so far: sums of doubles, not yet in order, about 0; and which groups they do not hold. */
struct lanes {
    vector sum[3], square[4];
    mask left;
};

ALWAYS struct lanes load_lanes(const struct batch *batch, int g)
{
    struct lanes lanes;
    for (int k = 0; k < 3; k++) lanes.sum[k] = load(batch->sum[k] + g);
    for (int k = 0; k < 4; k++) lanes.square[k] = load(batch->square[k] + g);
    memcpy(&lanes.left, batch->left + g, sizeof lanes.left);
    return lanes;
}

ALWAYS void store_lanes(struct batch *batch, int g, const struct lanes *lanes)
{
    for (int k = 0; k < 3; k++) put(batch->sum[k] + g, lanes->sum[k]);
    for (int k = 0; k < 4; k++) put(batch->square[k] + g, lanes->square[k]);
    memcpy(batch->left + g, &lanes->left, sizeof lanes->left);
}

ALWAYS void add_lanes(struct lanes *lanes, const struct lanes *more, int sums, int squares)
{
    lanes->left |= more->left;
    for (int k = 0; k < sums; k++) add(lanes->sum, 3, more->sum[k], &lanes->left);
    for (int k = 0; k < squares; k++) add(lanes->square, 4, more->square[k], &lanes->left);
}

/* The e of 2^e >= n. */
static int find_log(ptrdiff_t n)
{
    int e = 0;
    while (((ptrdiff_t)1 << e) < n) e++;
    return e;
}

/* Where numbers below 2^top, multiples of 2^unit, are cut so that sums of 2^log of them stay exact. The upper
 * parts of `levels` cuts are multiples of 2^(their exponent); what the last one leaves has to fit into a double too. */
struct grid {
    double sigma[2];
    bool fits;
};

static struct grid find_grid(int top, int unit, int log, int levels)
{
    struct grid grid = {{0.0, 0.0}, false};
    for (int k = 0; k < levels; k++) {
        grid.sigma[k] = 1.5 * power(top + log + 1);
        top += log - 52;
    }
    grid.fits = top + log <= 52 + unit;
    return grid;
}

/* Add a number, cut on a grid, to three sums. */
#define ADD_ON_GRID(sums, number, grid)                                                                   \
    do {                                                                                                  \
        const double t_ = ((number) + (grid).sigma[0]) - (grid).sigma[0], r_ = (number) - t_;             \
        const double u_ = levels > 1 ? (r_ + (grid).sigma[1]) - (grid).sigma[1] : r_;                     \
        sums##0 += t_, sums##1 += u_, sums##2 += levels > 1 ? r_ - u_ : 0.0;                              \
    } while (0)

/* Doubles: x, x^2 and its rounding error are each cut `levels` times; false if the values are too far apart. */
ALWAYS bool measure_doubles_on_grids(const double *x, ptrdiff_t n, int top, int unit, bool need_sum, int levels, struct lanes *all)
{
    const int log = find_log(n);
    const struct grid of_x = find_grid(top, unit, log, levels);
    const struct grid of_p = find_grid(2 * top, 2 * unit + 52, log, levels);
    const struct grid of_e = find_grid(2 * top - 53, 2 * unit, log, levels);
    if (!(of_x.fits && of_p.fits && of_e.fits)) return false;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, p0 = 0.0, p1 = 0.0, p2 = 0.0, e0 = 0.0, e1 = 0.0, e2 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, p0, p1, p2, e0, e1, e2)
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = x[i], p = value * value, e = find_rest(value, value, p);
        if (need_sum) ADD_ON_GRID(s, value, of_x);
        ADD_ON_GRID(p, p, of_p);
        ADD_ON_GRID(e, e, of_e);
    }
    const double sums[] = {s0, s1, s2}, squares[] = {p0, p1, e0, e1, p2, e2};
    for (int k = 0; k <= levels && need_sum; k++) add(all->sum, 3, fill(sums[k]), &all->left);
    for (int k = 0; k < 2 + 2 * levels; k++) add(all->square, 4, fill(squares[k]), &all->left);
    return true;
}

/* `_HIGHEST` and `_LOWEST` of records.py, as biased exponents, and what no float64 exceeds. */
enum { HIGHEST = 1023 + 400, LOWEST = 1023 - 300, ENDLESS = 0x7ff };

static void measure_doubles(const double *x, ptrdiff_t n, bool need_sum, struct lanes *all)
{
    int64_t largest = 0, least = INT64_MAX;
#pragma omp simd reduction(max : largest) reduction(min : least)
    for (ptrdiff_t i = 0; i < n; i++) {
        const int64_t size = get_bits(x[i]) & INT64_MAX, other = size == 0 ? INT64_MAX : size;
        largest = size > largest ? size : largest;
        least = other < least ? other : least;
    }
    if (largest == 0) return;
    const int high = (int)(largest >> 52), low = (int)(least >> 52), top = high - 1022, unit = low - 1075;
    if (high < HIGHEST && low > LOWEST) {
        if (measure_doubles_on_grids(x, n, top, unit, need_sum, 1, all)) return;
        if (measure_doubles_on_grids(x, n, top, unit, need_sum, 2, all)) return;
    }
    all->left = ~(mask){0};
}

/* Floats: their squares are doubles. `memory` has room for a leaf of doubles. */
static void measure_floats(const float *x, ptrdiff_t n, bool need_sum, struct lanes *all, double *memory)
{
    uint32_t largest = 0, least = UINT32_MAX;
#pragma omp simd reduction(max : largest) reduction(min : least)
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t size = get_float_bits(x[i]) & 0x7fffffffu, other = size - 1; /* of 0, the largest */
        largest = size > largest ? size : largest;
        least = other < least ? other : least;
    }
    if (largest == 0) return;
    const int high = (int)(largest >> 23), low = (int)((least + 1) >> 23), log = find_log(n);
    const int top = (high ? high : 1) - 126, unit = (low ? low : 1) - 150;
    const struct grid of_p = find_grid(2 * top, 2 * unit, log, 1);
    if (largest >= 0x7f800000u || top + log > 53 + unit || !of_p.fits) {
        for (ptrdiff_t i = 0; i < n; i++) memory[i] = (double)x[i];
        measure_doubles(memory, n, need_sum, all);
        return;
    }
    double sum = 0.0, p0 = 0.0, p1 = 0.0;
    const double sigma = of_p.sigma[0];
#pragma omp simd reduction(+ : sum, p0, p1)
    for (ptrdiff_t i = 0; i < n; i++) {
        const double value = (double)x[i], p = value * value, t = (p + sigma) - sigma;
        sum += value, p0 += t, p1 += p - t;
    }
    if (need_sum) add(all->sum, 3, fill(sum), &all->left);
    add(all->square, 4, fill(p0), &all->left), add(all->square, 4, fill(p1), &all->left);
}

/* Measure one group of any length, group g of a batch. `memory` has room for two leaves of doubles. */
static void measure_group(const struct view *in, const char *from, bool need_sum, struct batch *batch, int g, double *memory)
{
    struct lanes all = {0};
    for (ptrdiff_t part = 0; part < in->parts && !all.left[0]; part++, from += in->part_stride) {
        for (ptrdiff_t i = 0; i < in->shape[2] && !all.left[0]; i += LEAF) {
            const ptrdiff_t n = in->shape[2] - i < LEAF ? in->shape[2] - i : LEAF;
            const char *here = from + i * in->strides[2];
            const void *x = load_values(in, here, in->strides[2], n, memory);
            for (ptrdiff_t k = 0; k < n && part + 1 < in->parts; k += 64 / SIZES[in->kind]) /* no processor foresees it */
                __builtin_prefetch(here + in->part_stride + k * in->strides[2]);
            if (in->kind == F64) measure_doubles(x, n, need_sum, &all);
            else measure_floats(x, n, need_sum, &all, memory + LEAF);
        }
    }
    for (int k = 0; k < 3; k++) batch->sum[k][g] = all.sum[k][0];
    for (int k = 0; k < 4; k++) batch->square[k][g] = all.square[k][0];
    batch->left[g] = all.left[0];
}

/* Value i of LANES groups that lie side by side, doubles or floats. */
ALWAYS vector load_line(const void *x, bool doubles, ptrdiff_t i)
{
    if (doubles) return load((const double *)x + i * BATCH);
    floats values;
    memcpy(&values, (const float *)x + i * BATCH, sizeof values);
    return __builtin_convertvector(values, vector);
}

/* Find the largest size of n values of each of LANES groups, as bits, and the least but 0, or the number before it. */
#define FIND_RANGE(type, most)                                                              \
    for (ptrdiff_t i = 0; i < n; i++) {                                                     \
        type size, other;                                                                   \
        memcpy(&size, (const char *)x + i * BATCH * (ptrdiff_t)sizeof size[0], sizeof size); \
        size &= most, other = (size - 1) & most;                                            \
        for (int k = 0; k < LANES; k++) {                                                   \
            largest[k] = size[k] > largest[k] ? size[k] : largest[k];                       \
            least[k] = other[k] < least[k] ? other[k] : least[k];                           \
        }                                                                                   \
    }

/* The exponents of these, as those of doubles. */
ALWAYS void find_exponents(const void *x, ptrdiff_t n, bool doubles, mask *high, mask *low)
{
    if (doubles) {
        mask largest = {0}, least = largest + INT64_MAX;
        FIND_RANGE(mask, INT64_MAX)
        *high = (largest >> 52) | ((largest == 0) & 1023), *low = least >> 52;
    } else {
        ints largest = {0}, least = largest + INT32_MAX;
        FIND_RANGE(ints, INT32_MAX)
        largest >>= 23, least >>= 23;
        largest -= largest == 0, least -= least == 0; /* subnormal numbers have the exponent of the next */
        *high = __builtin_convertvector(largest, mask) + (1023 - 127);
        *low = __builtin_convertvector(least, mask) + (1023 - 127);
    }
}

/* The sums of n values of each of LANES groups on a grid for each; false if the values of one are too far apart. */
ALWAYS bool measure_lanes_on_grids(const void *x, ptrdiff_t n, bool need_sum, bool doubles, struct lanes *lanes)
{
    const int log = find_log(n);
    mask high, low;
    find_exponents(x, n, doubles, &high, &low);
    lanes->left |= doubles ? (high >= HIGHEST) | (low <= LOWEST) : high >= 1023 + 128;
    if (is_any(high - low > (doubles ? 78 - 53 : 52 - 24) - log)) return false; /* what find_grid has of these, too */
    const mask top = high - 1022;
    const vector of_x = 1.5 * make_power(top + (log + 1)), of_p = 1.5 * make_power(2 * top + (log + 1));
    const vector of_e = 1.5 * make_power(2 * top + (log - 52));
    for (ptrdiff_t i = 0; i < n; i++) {
        const vector value = load_line(x, doubles, i);
        vector p, e;
        two_prod(&p, &e, value, value);
        const vector s = doubles ? (value + of_x) - of_x : value, t = (p + of_p) - of_p, u = (e + of_e) - of_e;
        if (need_sum) lanes->sum[0] += s;
        if (need_sum && doubles) lanes->sum[1] += value - s;
        lanes->square[0] += t, lanes->square[1] += p - t;
        if (doubles) lanes->square[2] += u, lanes->square[3] += e - u;
    }
    return true;
}

/* The same at any distance, added to what is known. */
ALWAYS void measure_lanes_apart(const void *x, ptrdiff_t n, bool need_sum, bool doubles, struct lanes *lanes)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const vector value = load_line(x, doubles, i);
        vector p, e;
        two_prod(&p, &e, value, value);
        if (need_sum) add(lanes->sum, 3, value, &lanes->left);
        add(lanes->square, 4, p, &lanes->left);
        if (doubles) add(lanes->square, 4, e, &lanes->left);
    }
}

/* Measure n values of each of LANES groups; `more` adds them to what the batch has of these. */
ALWAYS void measure_lanes(const void *x, ptrdiff_t n, bool need_sum, bool doubles, bool more, struct batch *batch, int g)
{
    struct lanes known = {0}, here = {0};
    const void *from = (const char *)x + g * (doubles ? 8 : 4);
    if (more) known = load_lanes(batch, g);
    if (!measure_lanes_on_grids(from, n, need_sum, doubles, &here)) {
        known.left |= here.left;
        measure_lanes_apart(from, n, need_sum, doubles, &known);
    } else if (more) {
        add_lanes(&known, &here, doubles ? 2 : 1, doubles ? 4 : 2);
    } else {
        known = here;
    }
    store_lanes(batch, g, &known);
}

/* Neighbours that are worked on side by side, line by line: a line has `together` values of each, or fewer at the
 * end, where they lie in memory one behind the other. */
struct lines {
    int groups, together;
    ptrdiff_t count;
};

static struct lines find_lines(const struct view *view, int groups, bool dense)
{
    const ptrdiff_t size = SIZES[view->kind], n = view->shape[2];
    struct lines lines = {groups, 1, n};
    if (!dense || view->strides[1] != size || view->strides[2] != groups * size) return lines;
    while (2 * lines.together * groups <= BATCH) lines.together *= 2;
    lines.count = (n + lines.together - 1) / lines.together;
    return lines;
}

static ptrdiff_t count_line(const struct lines *lines, ptrdiff_t n, ptrdiff_t i)
{
    const ptrdiff_t rest = n - i * lines->together;
    return lines->groups * (rest < lines->together ? rest : lines->together);
}

/* Measure groups side by side, a few lines at a time. */
static void measure_across(const struct view *in, const char *from, const struct lines *lines, bool need_sum, struct batch *batch, double *values, void *memory)
{
    const int wide = lines->groups * lines->together;
    const bool doubles = in->kind == F64;
    const ptrdiff_t size = doubles ? 8 : 4;
    for (ptrdiff_t part = 0; part < in->parts; part++, from += in->part_stride) {
        for (ptrdiff_t first = 0; first < lines->count; first += SHORT) {
            const ptrdiff_t n = lines->count - first < SHORT ? lines->count - first : SHORT;
            for (ptrdiff_t i = 0; i < n; i++) {
                char *to = (char *)values + i * BATCH * size;
                const ptrdiff_t count = count_line(lines, in->shape[2], first + i);
                const void *x = load_values(in, from + (first + i) * lines->together * in->strides[2], in->strides[1], count, memory);
                memcpy(to, x, (size_t)(count * size));
                memset(to + count * size, 0, (size_t)((BATCH - count) * size));
            }
            for (int g = 0; g < wide; g += LANES) {
                if (doubles && need_sum) measure_lanes(values, n, true, true, first || part, batch, g);
                else if (doubles) measure_lanes(values, n, false, true, first || part, batch, g);
                else if (need_sum) measure_lanes(values, n, true, false, first || part, batch, g);
                else measure_lanes(values, n, false, false, first || part, batch, g);
            }
        }
    }
    for (int half = wide / 2; half >= lines->groups; half /= 2) { /* the sums of values that lie together */
        for (int g = 0; g < half; g += LANES) {
            struct lanes lanes = load_lanes(batch, g);
            const struct lanes more = load_lanes(batch, g + half);
            add_lanes(&lanes, &more, 3, 4);
            store_lanes(batch, g, &lanes);
        }
    }
}

#endif
