/* The exact sums of x and of x^2 of groups, as sums of few doubles: of one group (a row), or of LANES groups together. */
#pragma once

#include "loading.h"

enum {
    BATCH = 64,  /* groups that are measured, solved and written before the next ones are read */
    SHORT = 32,  /* groups of fewer values are turned round, so that every operation runs along the groups */
    LEAF = 1024, /* floats that are summed on one grid; what is added up of leaves stays exact */
};

/* The sums of LANES groups so far, each as doubles in no order; `left` is set for groups whose sums they have no room for. */
struct sums {
    vector at[NUMBERS];
    mask left;
};

/* What is known of the groups of a batch. */
struct batch {
    struct sums sums[BATCH / LANES];
    double counts[2][BATCH];     /* how many values of each group count, and degrees of freedom */
    double known[5][BATCH];      /* three doubles of each mean, and two of each divisor */
    double results[NUMBERS][BATCH]; /* mean, square, root, inverse; or the doubles of the sums */
    int64_t left[BATCH];         /* not 0: Python has to work on it */
};

ALWAYS void clear(struct sums *sums)
{
    for (int k = 0; k < NUMBERS; k++) sums->at[k] = fill(0.0);
    sums->left = (mask){0};
}

ALWAYS void add_sums(struct sums *sums, const struct sums *more, int of_sum, int of_square)
{
    sums->left |= more->left;
    for (int k = 0; k < of_sum; k++) add(sums->at, 3, more->at[k], &sums->left);
    for (int k = 0; k < of_square; k++) add(sums->at + SQUARE, 4, more->at[SQUARE + k], &sums->left);
}

/* Add one lane of some sums to every lane of others. */
ALWAYS void add_lane(struct sums *sums, const struct sums *more, int lane)
{
    struct sums one = {.left = (mask){0} + more->left[lane]};
    for (int k = 0; k < NUMBERS; k++) one.at[k] = fill(more->at[k][lane]);
    add_sums(sums, &one, 3, 4);
}

/* Make sums whose lanes are all alike those of group g of a batch. */
ALWAYS void put_sums(struct batch *batch, int g, const struct sums *sums)
{
    struct sums *to = &batch->sums[g / LANES];
    for (int k = 0; k < NUMBERS; k++) to->at[k][g % LANES] = sums->at[k][0];
    to->left[g % LANES] = sums->left[0];
}

/* Put the doubles of each sum in order: each is then some 53 bits below the one before. */
ALWAYS void order_sums(struct sums *sums) { distill(sums->at, 3, 3), distill(sums->at + SQUARE, 4, 4); }

/* Values in lines of LANES: one value of each of LANES groups or, if it is a row, LANES values of one group. Lines begin `step`
 * bytes from each other. Values of 16 bits come as rows alone, with an even number of lines. */
struct block {
    const char *x;
    ptrdiff_t step, n; /* the number of lines */
    enum kind kind;
    bool row, need_sum;
    char *memory; /* where values of 16 bits become floats, if their exponents are too far apart */
};

/* Load lines i and i + 1 of values shorter than doubles; the second is zeros if there is none. */
ALWAYS void load_two(struct block block, ptrdiff_t i, vector *one, vector *two)
{
    const char *x = block.x + i * block.step;
    if (block.kind == F32) {
        *one = widen(LOAD(floats, x)), *two = i + 1 < block.n ? widen(LOAD(floats, x + block.step)) : fill(0.0);
        return;
    }
    const wide values = load_wide(x, block.kind);
    floats parts[2];
    memcpy(parts, &values, sizeof parts);
    *one = widen(parts[0]), *two = widen(parts[1]);
}

/* Return line i, and its square as p + e, exactly. */
ALWAYS vector load_squares(struct block block, ptrdiff_t i, vector *p, vector *e)
{
    const char *x = block.x + i * block.step;
    const vector value = block.kind == F64 ? LOAD(vector, x) : widen(LOAD(floats, x));
    two_prod(p, e, value, value);
    return value;
}

/* Find two exponents of each lane, biased as those of doubles: of the largest magnitude, and of the number below the least
 * magnitude that is not 0. A subnormal number has the exponent of the least normal one. */
#define FIND_EXPONENTS(type, most, fraction, bias)                                                           \
    type largest = {0}, least = largest + most;                                                              \
    for (ptrdiff_t i = 0; i < block.n; i++) {                                                                \
        const type size = LOAD(type, block.x + i * block.step) & most, other = (size - 1) & most;            \
        for (int k = 0; k < LANES; k++) {                                                                    \
            largest[k] = size[k] > largest[k] ? size[k] : largest[k];                                        \
            least[k] = other[k] < least[k] ? other[k] : least[k];                                            \
        }                                                                                                    \
    }                                                                                                        \
    largest >>= fraction, least >>= fraction;                                                                \
    *high = __builtin_convertvector(largest - (largest == 0), mask) + bias;                                  \
    *low = __builtin_convertvector(least - (least == 0), mask) + bias;

/* Find these exponents of values of any kind; of a row, they are of all lanes. Of float16, they are those of its largest and
 * its least normal number, whatever the values are. */
ALWAYS void find_exponents(struct block block, mask *high, mask *low)
{
    if (block.kind == F16) {
        *high = (mask){0} + 1023 + 15, *low = (mask){0} + 1023 - 14;
        return;
    }
    if (block.kind == BF16) {
        uint16_t largest = 0, least = UINT16_MAX;
#pragma omp simd reduction(max : largest) reduction(min : least)
        for (ptrdiff_t i = 0; i < block.n * LANES; i++) {
            const uint16_t size = ((const uint16_t *)block.x)[i] & 0x7fff, other = (uint16_t)(size - 1);
            largest = size > largest ? size : largest;
            least = other < least ? other : least;
        }
        largest >>= 7, least >>= 7;
        *high = (mask){0} + (largest + !largest + 1023 - 127), *low = (mask){0} + (least + !least + 1023 - 127);
    } else if (block.kind == F64) {
        FIND_EXPONENTS(mask, INT64_MAX, 52, 0)
    } else {
        FIND_EXPONENTS(ints, INT32_MAX, 23, 1023 - 127)
    }
    int64_t highest = (*high)[0], lowest = (*low)[0];
    for (int k = 1; k < LANES; k++) {
        highest = (*high)[k] > highest ? (*high)[k] : highest;
        lowest = (*low)[k] < lowest ? (*low)[k] : lowest;
    }
    if (block.row) *high = (mask){0} + highest, *low = (mask){0} + lowest;
    *high |= (*high == 1) & 1023; /* nothing but zeros */
}

/* Biased exponents of doubles: of values with these and with higher or lower ones, squares may over- or underflow. */
enum { HIGHEST = 1023 + 400, LOWEST = 1023 - 300 };

/* Add to a sum as much of a term as its last bit, which stays where it is, has room for; return the rest of the term. */
ALWAYS vector add_on_grid(vector *sum, vector term)
{
    const vector next = add_aside(*sum, term), rest = term - (next - *sum);
    *sum = next;
    return rest;
}

/* Measure a block with few additions for each value: each term is cut at a bit, so that all upper parts add up exactly, and all
 * lower parts. Of doubles, terms are x, x^2 rounded, and its rounding error; of shorter values, x^2, which is a double, as x
 * adds up exactly by itself. Return false, with no sums, if the values are too far apart for that. */
ALWAYS bool measure_on_grids(struct block block, struct sums *sums)
{
    int log = 0;
    while ((ptrdiff_t)1 << log < (block.row ? block.n * LANES : block.n)) log++;
    const bool doubles = block.kind == F64, need_sum = block.need_sum;
    const int bits = block.kind == F16 ? 11 : block.kind == BF16 ? 8 : 24;
    vector *sum = sums->at, *square = sums->at + SQUARE;
    mask high, low;
    find_exponents(block, &high, &low);
    sums->left |= doubles ? (high >= HIGHEST) | (low <= LOWEST) : high >= 1023 + 128;
    if (is_any(high - low > (doubles ? 78 - 53 : 52 - bits) - log)) return false; /* for squares, and so for x */
    const mask top = high - 1022;
    const vector of_x = 1.5 * make_power(top + (log + 1)), of_p = 1.5 * make_power(2 * top + (log + 1));
    const vector of_e = 1.5 * make_power(2 * top + (log - 52));
    vector s = of_x, t = of_p, u = of_e, p, e;
    for (ptrdiff_t i = 0; i < block.n && doubles; i++) {
        const vector value = load_squares(block, i, &p, &e);
        if (need_sum) sum[1] = add_aside(sum[1], add_on_grid(&s, value));
        square[1] = add_aside(square[1], add_on_grid(&t, p)), square[3] = add_aside(square[3], add_on_grid(&u, e));
    }
    vector other[3] = {fill(0.0), of_p, fill(0.0)};
    const bool plain = block.kind == BF16 && 2 * (high[0] - low[0]) + 2 * bits + log <= 53; /* sums of squares are doubles */
    if (plain) t = other[1] = fill(0.0);
    for (ptrdiff_t i = 0; i < block.n && plain; i += 2) {
        vector one, two;
        load_two(block, i, &one, &two);
        if (need_sum) sum[0] += one, other[0] += two;
        t = add_product(one, one, t), other[1] = add_product(two, two, other[1]);
    }
    for (ptrdiff_t i = 0; i < block.n && !doubles && !plain; i += 2) {
        vector one, two;
        load_two(block, i, &one, &two);
        const vector next = add_product(one, one, t), after = add_product(two, two, other[1]);
        if (need_sum) sum[0] = add_aside(sum[0], one), other[0] = add_aside(other[0], two);
        square[1] += add_product(one, one, t - next), other[2] += add_product(two, two, other[1] - after);
        t = next, other[1] = after;
    }
    sum[0] += other[0], square[1] += other[2], t += plain ? other[1] : other[1] - of_p;
    if (need_sum && doubles) sum[0] = s - of_x;
    square[0] = plain ? t : t - of_p;
    if (doubles) square[2] = u - of_e;
    for (int k = 0; k < NUMBERS && block.row; k++) {
        double total = 0.0;
        for (int i = 0; i < LANES; i++) total += sums->at[k][i];
        sums->at[k] = fill(total);
    }
    if (block.kind == F16) sums->left |= square[0] - square[0] != 0.0; /* infinities and NaN, of any lane of a row */
    return true;
}

/* Add each value of a block to known sums, and its square, as many doubles as it takes. */
static void add_each(struct block block, struct sums *known)
{
    struct sums here;
    clear(&here);
    if (block.kind >= F16) {
        load_values(block.x, block.kind, SIZES[block.kind], block.n * LANES, block.memory);
        block.x = block.memory, block.step = 4 * LANES, block.kind = F32;
    }
    vector p, e;
    for (ptrdiff_t i = 0; i < block.n; i++) {
        const vector value = load_squares(block, i, &p, &e);
        if (block.need_sum) add(here.at, 3, value, &here.left);
        add(here.at + SQUARE, 4, p, &here.left);
        if (block.kind == F64) add(here.at + SQUARE, 4, e, &here.left);
    }
    order_sums(known); /* which makes room */
    if (!block.row) add_sums(known, &here, 3, 4);
    for (int lane = 0; lane < LANES && block.row; lane++) add_lane(known, &here, lane);
}

/* Measure a block of any values; add its sums to the known ones if there are `more`, else make them the known ones. */
ALWAYS void measure_block(struct block block, bool more, struct sums *known)
{
    struct sums here;
    clear(&here);
    const bool fits = measure_on_grids(block, &here);
    if (!more) *known = fits ? here : (struct sums){0};
    else if (fits) add_sums(known, &here, block.kind == F64 ? 2 : 1, block.kind == F64 ? 4 : 2);
    if (!fits) known->left |= here.left, add_each(block, known);
}

/* Return the bytes of a value in memory: it is measured as a double or as a float. */
static ptrdiff_t find_size(const struct view *view) { return view->kind == F64 ? 8 : 4; }

/* Measure one group or, if `together` is not 0, some groups that are neighbours, whose lines have `together` values of each.
 * `memory` has room for SHORT * BATCH doubles. SHORT lines at a time are loaded into it; the last ones stay there. */
static void measure(const struct view *in, const char *from, int groups, int together, bool need_sum, struct batch *batch,
                    int first, char *memory)
{
    const bool doubles = in->kind == F64, row = !together;
    const ptrdiff_t size = find_size(in), n = in->shape[3], step = in->strides[row ? 3 : 1];
    const ptrdiff_t each = row ? LEAF * 4 / size : together, most = row ? 1 : SHORT;
    struct sums all;
    clear(&all);
    for (ptrdiff_t part = 0; part < in->shape[2] && !all.left[0]; part++, from += in->strides[2]) {
        for (ptrdiff_t i = 0, next = 0; i < n && !all.left[0]; i = next) {
            ptrdiff_t lines = 0, count = 0;
            const char *x = memory;
            enum kind kind = doubles ? F64 : F32;
            for (; next < n && lines < most; next += each, lines++) {
                const char *line = from + next * in->strides[3];
                char *to = memory + lines * BATCH * size;
                count = groups * (n - next < each ? n - next : each);
                if (row && step == SIZES[in->kind] && count % (in->kind < F16 ? LANES : WIDTH) == 0) {
                    x = line, kind = in->kind;
                    continue;
                }
                load_values(line, in->kind, step, count, to);
                memset(to + count * size, 0, (size_t)((row ? LANES : BATCH - count) * size));
            }
            for (int g = 0; g < (row ? 1 : groups * together); g += LANES)
                WITH_KIND(k, kind, WITH(r, row, WITH(s, need_sum,
                    const ptrdiff_t rows = r ? (count + LANES - 1) / LANES : lines;
                    const struct block block = {x + g * size, (r ? LANES : BATCH) * SIZES[k], rows, k, r, s, memory};
                    if (r || k < F16) measure_block(block, part || i, r ? &all : &batch->sums[g / LANES]))))
        }
    }
    if (row) put_sums(batch, first, &all);
    for (int g = 0; g < groups && together > 1; g++) { /* the sums of values that lie together */
        struct sums all = {0};
        for (int i = g; i < groups * together; i += groups) add_lane(&all, &batch->sums[i / LANES], i % LANES);
        put_sums(batch, g, &all);
    }
}
