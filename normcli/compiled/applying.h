/* The elements: each sequence ends with two sums, of all that is known less and more its error, and misses what they
 * round in two ways. Bounds of errors are those of sequences.py. */
#pragma once

#include "measuring.h"

enum { PIECE = 1024 }; /* values that are normalized at once */

/* What values are calculated with: one number for each group of a batch. */
struct operands {
    double shift[BATCH], centre[BATCH], second[BATCH], rest[BATCH], exact[BATCH], top[BATCH], low[BATCH], factor[BATCH];
};

/* Gamma and beta of up to PIECE values; -0 is added where there is no beta, which changes nothing. */
struct affine {
    double gamma[PIECE], top[PIECE], low[PIECE], step[PIECE], beta[PIECE];
    int64_t place[5]; /* whose they are */
};

/* What batches are worked on in. */
struct memory {
    struct batch batch;
    struct operands operands;
    struct affine affine;
    int64_t missed[PIECE];
    double y[PIECE];
    double values[SHORT * BATCH]; /* as they are measured: a leaf and more, or neighbours */
};

/* Values that are worked on together: some of one group, or a line of neighbours. */
struct line {
    const char *from, *loaded; /* the values, and the same as they were measured, or NULL */
    char *to;
    ptrdiff_t step, out_step, n; /* from value to value in memory, and how many they are */
    ptrdiff_t group, i;          /* the number of the first group, and which of its values is the first */
    int g, groups;               /* its number in the batch, and how many groups take turns */
};

#define TOP_BITS (~((1LL << 27) - 1))
#define EXPONENT_BITS (0x7ffLL << 52)

/* `_find_beyond` */
static bool is_beyond(double value)
{
    const double size = fabs(value);
    return size != 0.0 && size <= DBL_MAX && !(size >= 0x1p-300 && size <= 0x1p300);
}

/* Groups whose numbers are beyond are left. */
static void prepare_short(struct batch *batch, struct operands *o)
{
    for (int g = 0; g < BATCH; g++) {
        if (is_beyond(batch->known[3][g]) || is_beyond(batch->known[0][g])) batch->left[g] = -1;
        const double hi = batch->known[3][g], inverse = 1.0 / hi;
        const double capped = inverse < 0x1p1022 ? inverse : 0x1p1022;
        o->factor[g] = hi > 0.0 ? capped : inverse;
        o->centre[g] = batch->known[0][g];
        o->second[g] = batch->known[1][g] + 0.0;
    }
}

static void prepare_exact(const struct batch *batch, struct operands *o)
{
    for (int g = 0; g < BATCH; g++) {
        const double hi = batch->known[3][g], lo = batch->known[4][g], factor = 1.0 / hi;
        const double top = hi >= 0x1p-600 && hi <= 0x1p600 ? from_bits((get_bits(factor) + (1LL << 26)) & TOP_BITS) : NAN;
        const double of_divisor = from_bits(get_bits(hi) & TOP_BITS);
        o->top[g] = top, o->factor[g] = factor;
        o->low[g] = (((1.0 - top * of_divisor) - top * (hi - of_divisor)) - top * lo) * factor;
        const double mean = batch->known[0][g], mid = batch->known[1][g], last = batch->known[2][g];
        const double unit = from_bits(get_bits(hi) & EXPONENT_BITS);
        const double to_grid = unit * 0x1.8p28, about = to_grid * 0x1p20;
        const double near = to_grid - ((mean + about) - about);
        const double shift = fabs(mean) < unit * 0x1p30 ? near : 0.0;
        const double on_grid = (mean + shift) - shift, second = (mid + to_grid) - to_grid;
        o->shift[g] = shift, o->centre[g] = on_grid, o->second[g] = second;
        o->rest[g] = ((mean - on_grid) + (mid - second)) + last;
        o->exact[g] = mid == 0.0 && last == 0.0 ? mean : NAN;
    }
}

/* What `prepare` leaves of gamma: NaN where products could leave float64's range, for short results also where beta
 * is beyond. */
static void prepare_affine(struct affine *a, ptrdiff_t n, bool exact)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const bool beyond = is_beyond(a->gamma[i]) || (!exact && is_beyond(a->beta[i]));
        const double gamma = beyond ? NAN : a->gamma[i], shifted = SPLITTER * gamma, high = shifted - (shifted - gamma);
        a->gamma[i] = gamma, a->top[i] = high, a->low[i] = gamma - high;
        a->step[i] = from_bits(get_bits(gamma) & EXPONENT_BITS);
    }
}

/* Results of 24 bits and fewer: of one group, or of some that lie `across`; returns whether a value is missed. What is
 * written is `to`, and later on becomes `out`. Without gamma and beta, it is not said which are missed. */
ALWAYS int64_t apply_short(struct memory *m, const struct line *line, const char *x, enum kind in, char *y, enum kind to,
                           enum kind out, bool across, bool affine)
{
    const struct operands *o = &m->operands;
    const struct affine *a = &m->affine;
    const ptrdiff_t n = line->n, g = line->g;
    int64_t any = 0, *missed = m->missed;
#pragma omp simd reduction(| : any)
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t k = g + i * across;
        double value = ((fetch(x + i * SIZES[in], in) - o->centre[k]) - o->second[k]) * o->factor[k];
        int64_t miss;
        if (affine) {
            value *= a->gamma[i];
            const double sum = value + a->beta[i];
            miss = has_middle(sum, (fabs(value) + fabs(sum)) * 0x1p-49, out) | (a->gamma[i] != a->gamma[i]);
            missed[i] = -miss;
            value = sum;
        } else {
            miss = is_near_middle(value, out);
        }
        any |= miss;
        store(y + i * SIZES[to], to, value);
    }
    return any;
}

/* Say which values `apply_short` has missed without gamma and beta: few lines have any. */
static void mark_missed(struct memory *m, const struct line *line, const char *x, enum kind in, enum kind out, bool across)
{
    const struct operands *o = &m->operands;
    for (ptrdiff_t i = 0; i < line->n; i++) {
        const ptrdiff_t k = line->g + i * across;
        const double value = ((fetch(x + i * SIZES[in], in) - o->centre[k]) - o->second[k]) * o->factor[k];
        m->missed[i] = is_near_middle(value, out);
    }
}

/* The same as doubles, which `out` holds or which are rounded to it then. */
ALWAYS int64_t apply_exact(struct memory *m, const struct line *line, const char *x, enum kind in, double *results,
                           enum kind out, bool across, bool centred, bool gamma, bool beta)
{
    const struct operands *o = &m->operands;
    const struct affine *a = &m->affine;
    const ptrdiff_t n = line->n, g = line->g;
    int64_t any = 0, *missed = m->missed;
#pragma omp simd reduction(| : any)
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t k = g + i * across;
        const double value = fetch(x + i * SIZES[in], in);
        double t, r;
        if (centred) {
            t = (value + o->shift[k]) - o->shift[k];
            r = (value - t) - o->rest[k];
            t = (t - o->centre[k]) - o->second[k];
        } else {
            t = from_bits(get_bits(value) & TOP_BITS);
            r = value - t;
        }
        double y = t * o->top[k];
        t = t * o->low[k] + r * o->factor[k];
        const double size = fabs(y);
        int64_t miss = !(size <= (centred ? 8.0 : 0x1p600)) | (!centred & (size < 0x1p-600) & (value != 0.0));
        if (gamma) {
            const double cut = 0x1.8p30;
            const double first = centred ? (y + cut) - cut : from_bits(get_bits(y) & TOP_BITS);
            t = t + (y - first);
            y = first * a->top[i];
            t = t * a->gamma[i] + first * a->low[i];
        }
        double error = !centred ? fabs(y) * (beta ? 0x1p-71 : 0x1p-74) : gamma ? a->step[i] * 0x1p-70 : 0x1p-72;
        if (beta) {
            const double total = y + a->beta[i], back = total - y;
            t += (y - (total - back)) + (a->beta[i] - back);
            y = total;
            error += fabs(t) * 0x1p-51;
        }
        double low = y + (t - error);
        const double high = y + (t + error);
        miss |= !(low == high);
        if (!centred && !beta) /* a 0 has its own sign */
            low = low == 0.0 ? value * (gamma ? a->gamma[i] : 1.0) : low;
        else if (!gamma && !beta) { /* a value that is the mean becomes 0; -0 keeps its sign */
            const int64_t zero = (value == o->exact[k]) & (size == 0.0) & (get_bits(value) != INT64_MIN);
            low = zero ? 0.0 : low;
            miss &= !zero;
        }
        results[i] = low;
        missed[i] = -miss;
        any |= miss;
    }
    for (ptrdiff_t i = 0; out != F64 && i < n; i++) {
        const int64_t miss = has_middle(results[i], 0.0, out);
        missed[i] |= -miss;
        any |= miss;
    }
    return any;
}
