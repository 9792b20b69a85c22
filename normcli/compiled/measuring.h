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

/* Leave each of the doubles of a sum some 53 bits below the last. */
static void order_lanes(struct batch *batch, int g)
{
    struct lanes lanes = load_lanes(batch, g);
    distill(lanes.sum, 3, 3), distill(lanes.square, 4, 4);
    store_lanes(batch, g, &lanes);
}

/* The e of 2^e >= n. */
static int find_log(ptrdiff_t n)
{
    int e = 0;
    while (((ptrdiff_t)1 << e) < n) e++;
    return e;
}

/* Values are looked at in lines of LANES: one of each of some groups, or so many of one group, which is then a row.
 * From line to line there are `step` values. */
struct block {
    const void *x;
    ptrdiff_t step, n; /* lines */
    bool doubles, row; /* doubles or floats */
    bool need_sum;
};

ALWAYS vector load_line(struct block block, ptrdiff_t i)
{
    if (block.doubles) return load((const double *)block.x + i * block.step);
    floats values;
    memcpy(&values, (const float *)block.x + i * block.step, sizeof values);
    return __builtin_convertvector(values, vector);
}

/* Find the largest size of each lane, as bits, and the least but 0, or the number before it. */
#define FIND_RANGE(type, most)                                                                               \
    for (ptrdiff_t i = 0; i < block.n; i++) {                                                                \
        type size, other;                                                                                    \
        memcpy(&size, (const char *)block.x + i * block.step * (ptrdiff_t)sizeof size[0], sizeof size);      \
        size &= most, other = (size - 1) & most;                                                             \
        for (int k = 0; k < LANES; k++) {                                                                    \
            largest[k] = size[k] > largest[k] ? size[k] : largest[k];                                        \
            least[k] = other[k] < least[k] ? other[k] : least[k];                                            \
        }                                                                                                    \
    }

/* The exponents of these, as those of doubles; those of a row together. */
ALWAYS void find_exponents(struct block block, mask *high, mask *low)
{
    if (block.doubles) {
        mask largest = {0}, least = largest + INT64_MAX;
        FIND_RANGE(mask, INT64_MAX)
        *high = largest >> 52, *low = least >> 52;
    } else {
        ints largest = {0}, least = largest + INT32_MAX;
        FIND_RANGE(ints, INT32_MAX)
        largest >>= 23, least >>= 23;
        largest -= largest == 0, least -= least == 0; /* subnormal numbers have the exponent of the next */
        *high = __builtin_convertvector(largest, mask) + (1023 - 127);
        *low = __builtin_convertvector(least, mask) + (1023 - 127);
    }
    int64_t highest = (*high)[0], lowest = (*low)[0];
    for (int k = 1; k < LANES; k++) {
        highest = (*high)[k] > highest ? (*high)[k] : highest;
        lowest = (*low)[k] < lowest ? (*low)[k] : lowest;
    }
    if (block.row) *high = (mask){0} + highest, *low = (mask){0} + lowest;
    *high |= (*high == 0) & 1023; /* nothing but zeros */
}

/* `_HIGHEST` and `_LOWEST` of records.py, as biased exponents. */
enum { HIGHEST = 1023 + 400, LOWEST = 1023 - 300 };

/* Add the upper part of a term to a sum, whose last bit stays where it is; returns what is cut off. */
ALWAYS vector add_on_grid(vector *sum, vector term)
{
    const vector next = *sum + term, rest = term - (next - *sum);
    *sum = next;
    return rest;
}

/* Cut x (of doubles), x^2 and (of doubles) its rounding error where sums of their upper parts stay exact, and those
 * of what is left of them, too; false if values are too far apart for that. */
ALWAYS bool measure_on_grids(struct block block, struct lanes *lanes)
{
    const int log = find_log(block.row ? block.n * LANES : block.n);
    const bool doubles = block.doubles, need_sum = block.need_sum;
    mask high, low;
    find_exponents(block, &high, &low);
    lanes->left |= doubles ? (high >= HIGHEST) | (low <= LOWEST) : high >= 1023 + 128;
    if (is_any(high - low > (doubles ? 78 - 53 : 52 - 24) - log)) return false; /* for squares, and so for x */
    const mask top = high - 1022;
    const vector of_x = 1.5 * make_power(top + (log + 1)), of_p = 1.5 * make_power(2 * top + (log + 1));
    const vector of_e = 1.5 * make_power(2 * top + (log - 52));
    vector s = of_x, t = of_p, u = of_e;
    for (ptrdiff_t i = 0; i < block.n; i++) {
        const vector value = load_line(block, i);
        vector p, e;
        two_prod(&p, &e, value, value);
        if (need_sum && !doubles) lanes->sum[0] += value;
        if (need_sum && doubles) lanes->sum[1] += add_on_grid(&s, value);
        lanes->square[1] += add_on_grid(&t, p);
        if (doubles) lanes->square[3] += add_on_grid(&u, e);
    }
    if (need_sum && doubles) lanes->sum[0] = s - of_x;
    lanes->square[0] = t - of_p;
    if (doubles) lanes->square[2] = u - of_e;
    for (int k = 0; k < 4 && block.row; k++) {
        if (k < 3) lanes->sum[k] = fill(add_up(lanes->sum[k]));
        lanes->square[k] = fill(add_up(lanes->square[k]));
    }
    return true;
}

/* Measure a block, whatever its values are, and add it to what is known, if anything is. */
ALWAYS void measure_block(struct block block, bool more, struct lanes *known)
{
    struct lanes here = {0};
    if (measure_on_grids(block, &here)) {
        if (more) add_lanes(known, &here, block.doubles ? 2 : 1, block.doubles ? 4 : 2);
        else *known = here;
        return;
    }
    for (ptrdiff_t i = 0; i < block.n; i++) {
        const vector value = load_line(block, i);
        vector p, e;
        two_prod(&p, &e, value, value);
        if (block.need_sum) add(here.sum, 3, value, &here.left);
        add(here.square, 4, p, &here.left);
        if (block.doubles) add(here.square, 4, e, &here.left);
    }
    distill(known->sum, 3, 3), distill(known->square, 4, 4); /* which makes room */
    if (!block.row) add_lanes(known, &here, 3, 4);
    for (int lane = 0; lane < LANES && block.row; lane++) {
        struct lanes one = {.left = (mask){0} + here.left[lane]};
        for (int k = 0; k < 3; k++) one.sum[k] = fill(here.sum[k][lane]);
        for (int k = 0; k < 4; k++) one.square[k] = fill(here.square[k][lane]);
        add_lanes(known, &one, 3, 4);
    }
}

/* Measure one group of any length, group g of a batch. `memory` has room for a leaf of doubles and a line. */
static void measure_group(const struct view *in, const char *from, bool need_sum, struct batch *batch, int g, void *memory)
{
    struct lanes all = {0};
    const bool doubles = in->kind == F64;
    const ptrdiff_t leaf = doubles ? LEAF / 2 : LEAF, size = doubles ? 8 : 4;
    for (ptrdiff_t part = 0; part < in->parts && !all.left[0]; part++, from += in->part_stride) {
        for (ptrdiff_t i = 0; i < in->shape[2] && !all.left[0]; i += leaf) {
            const ptrdiff_t n = in->shape[2] - i < leaf ? in->shape[2] - i : leaf;
            const void *x = load_values(in, from + i * in->strides[2], in->strides[2], n, memory);
            if (n % LANES) {
                if (x != memory) memcpy(memory, x, (size_t)(n * size));
                memset((char *)memory + n * size, 0, (size_t)(LANES * size));
                x = memory;
            }
            WITH(d, doubles, WITH(s, need_sum, measure_block((struct block){x, LANES, (n + LANES - 1) / LANES, d, true, s}, part || i, &all)))
        }
    }
    for (int k = 0; k < 3; k++) batch->sum[k][g] = all.sum[k][0];
    for (int k = 0; k < 4; k++) batch->square[k][g] = all.square[k][0];
    batch->left[g] = all.left[0];
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
                struct lanes known = {0};
                const char *x = (const char *)values + g * size;
                if (first || part) known = load_lanes(batch, g);
                WITH(d, doubles, WITH(s, need_sum, measure_block((struct block){x, BATCH, n, d, false, s}, first || part, &known)))
                store_lanes(batch, g, &known);
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
