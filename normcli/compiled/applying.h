/* The elements, rounded once: each sequence of steps ends with two sums, the result less and more the bound of its error. Where
 * these are rounded differently, the result is calculated again, by `settle` or by Python. */
#pragma once

#include "measuring.h"

enum { PIECE = 1024 }; /* values that are normalized at once */

/* What values are calculated with, made of mean and divisor: one number for each group of a batch. */
struct operands {
    double shift[BATCH], centre[BATCH], second[BATCH], rest[BATCH], exact[BATCH], top[BATCH], low[BATCH], factor[BATCH];
    double lower[BATCH], upper[BATCH];           /* factors that the right one lies between */
    float times[BATCH], plus[BATCH], off[BATCH]; /* factor, what is added, and how far off results may be for that */
};

/* Gamma and beta of up to PIECE values; -0 is added where there is no beta, which changes nothing. */
struct affine {
    double gamma[PIECE], top[PIECE], low[PIECE], step[PIECE], beta[PIECE];
    double error[PIECE];             /* of beta, 2^-49 of it */
    float times[PIECE], plus[PIECE]; /* gamma and beta */
    bool beyond;                     /* whether some gammas are NaN */
    int64_t place[5];                /* the line that they are of: two of its numbers, and three places of parameters */
};

/* What batches are worked on in. */
struct memory {
    struct batch batch;
    struct operands operands;
    struct affine affine;
    int64_t missed[PIECE];
    uint32_t undecided[PIECE / WIDTH]; /* of some WIDTH results, a bit for each, */
    ptrdiff_t places[PIECE / WIDTH];   /* and the place of the first of them in its line */
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

/* Whether a number is so large or so small that products with it may leave the range of doubles. */
static bool is_beyond(double value)
{
    const double size = fabs(value);
    return size != 0.0 && size <= DBL_MAX && !(size >= 0x1p-300 && size <= 0x1p300);
}

/* Return the nearest float, which is off by 2^-24 of itself at most; NaN for numbers near the ends of the range. */
static float make_near(double value, double least)
{
    const double size = fabs(value);
    return size == 0.0 || (size > least && size < 0x1p40) ? (float)value : NAN;
}

/* Prepare groups for results of 24 bits and fewer; those whose mean or divisor is beyond are left to Python. */
static void prepare_short(struct batch *batch, struct operands *o)
{
    for (int g = 0; g < BATCH; g++) {
        if (is_beyond(batch->known[3][g]) || is_beyond(batch->known[0][g])) batch->left[g] = -1;
        const double hi = batch->known[3][g], inverse = 1.0 / hi;
        const double factor = hi > 0.0 && !(inverse < 0x1p1022) ? 0x1p1022 : inverse;
        o->factor[g] = factor, o->lower[g] = factor * (1.0 - 0x1p-49), o->upper[g] = factor * (1.0 + 0x1p-49);
        o->centre[g] = batch->known[0][g];
        o->second[g] = batch->known[1][g] + 0.0;
        const double shift = (-o->centre[g] - o->second[g]) * factor; /* -0 for a mean of 0 */
        o->times[g] = make_near(factor, 0x1p-30), o->plus[g] = (float)shift;
        o->off[g] = shift == 0.0 ? 0.0f : (float)(fabs(shift) * (3.5 * 0x1p-24) + 0x1p-125);
    }
}

/* Prepare groups for results of more bits: the mean and the inverse of the divisor in parts, so that differences and products
 * with parts of x are exact. */
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

/* Prepare gamma and beta of n values. Where gamma is beyond or, for short results, beta is, gamma becomes NaN: such values are
 * left to Python. */
static void prepare_affine(struct affine *a, ptrdiff_t n, bool exact)
{
    a->beyond = false;
    for (ptrdiff_t i = 0; i < n; i++) {
        const bool beyond = is_beyond(a->gamma[i]) || (!exact && is_beyond(a->beta[i]));
        const double gamma = beyond ? NAN : a->gamma[i], shifted = SPLITTER * gamma, high = shifted - (shifted - gamma);
        a->gamma[i] = gamma, a->top[i] = high, a->low[i] = gamma - high;
        a->step[i] = from_bits(get_bits(gamma) & EXPONENT_BITS);
        a->error[i] = fabs(a->beta[i]) * 0x1p-49, a->beyond |= gamma != gamma;
        a->times[i] = make_near(gamma, 0x1p-30), a->plus[i] = make_near(a->beta[i], 0x1p-100);
    }
}

/* Leave value k of a line to Python; its whole group if there is no room for more values. */
static void miss(struct task *task, struct batch *b, const struct line *line, ptrdiff_t k, double x)
{
    const ptrdiff_t turn = k % line->groups, g = line->g + turn;
    const ptrdiff_t number = (line->group + turn) * task->n + line->i + k / line->groups;
    if (b->left[g] || (task->selected && !task->selected[number])) return;
    if (task->missed_count == task->missed_most) {
        b->left[g] = -1;
        return;
    }
    struct missed *missed = task->missed + task->missed_count++;
    missed->number = (double)number, missed->x = x;
    for (int k = 0; k < 5; k++) missed->known[k] = b->known[k][g];
}

/* Write a result of 24 bits or fewer, rounded from a double that is off by 2^-49 of itself and of its largest term at most; leave
 * it to Python where that does not decide. */
static void settle(struct task *task, struct memory *m, const struct line *line, ptrdiff_t i, double x, char *y, bool affine)
{
    const struct operands *o = &m->operands;
    const ptrdiff_t k = line->g + i % line->groups;
    const enum kind out = task->out.kind;
    const double value = ((x - o->centre[k]) - o->second[k]) * o->factor[k], gamma = affine ? m->affine.gamma[i] : 1.0;
    const double product = value * gamma, sum = affine ? product + m->affine.beta[i] : product;
    const double error = ((affine ? fabs(product) : 0.0) + fabs(sum)) * 0x1p-49;
    if (gamma != gamma || (fabs(sum) <= DBL_MAX && has_middle(sum, error, out))) miss(task, &m->batch, line, i, x);
    else store(y + i * SIZES[out], out, sum);
}

/* Calculate results of float32, of one group or of neighbours that lie `across`; return whether some are not decided: whether
 * both ends of what a result may be do not become one float. */
ALWAYS bool apply_single(const struct memory *m, const struct line *line, const char *x, float *y, bool across, bool centred,
                         bool affine, bool beta)
{
    const struct operands *o = &m->operands;
    const struct affine *a = &m->affine;
    const ptrdiff_t n = line->n, g = line->g;
    uint32_t any = affine && a->beyond;
#pragma omp simd reduction(| : any)
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t k = g + i * across;
        double value = fetch(x + i * SIZES[F32], F32), low, high;
        if (centred) value = (value - o->centre[k]) - o->second[k];
        if (affine) value *= a->gamma[i];
        if (beta) {
            const double product = value * o->factor[k], sum = product + a->beta[i];
            const double error = fabs(product) * 0x1p-48 + a->error[i];
            low = sum - error, high = sum + error;
        } else {
            low = value * o->lower[k], high = value * o->upper[k];
        }
        y[i] = (float)low;
        any |= get_float_bits((float)low) ^ get_float_bits((float)high);
    }
    return any;
}

/* Calculate results of 16 bits by floats, WIDTH at a time; return how many times some of these are undecided, and note which.
 * Factors, what is added, products and sums are each off by 2^-24 of themselves, and so are the ends of what results may be. */
ALWAYS int apply_half(struct memory *m, const struct line *line, const char *x, enum kind in, char *y, enum kind out,
                      bool across, bool affine)
{
    const struct operands *o = &m->operands;
    const struct affine *a = &m->affine;
    const ptrdiff_t n = line->n, g = line->g;
    wide times = repeat(o->times[g]), plus = repeat(o->plus[g]), off = repeat(o->off[g]), error;
    int count = 0;
    for (ptrdiff_t i = 0; i < n; i += WIDTH) {
        if (across) times = LOAD(wide, o->times + i), plus = LOAD(wide, o->plus + i), off = LOAD(wide, o->off + i);
        const wide value = load_wide(x + i * SIZES[in], in);
        wide sum = multiply_and_add(value, times, plus), size = find_sizes(sum);
        if (affine) {
            const wide gamma = LOAD(wide, a->times + i), first = multiply_and_add(size, repeat(6.5f * 0x1p-24f), off);
            const wide_bits is_tiny = (wide_bits)((wide_bits)find_sizes(value) - 1u < 0x217fffffu); /* below 2^-60, not 0 */
            const wide_bits has_no_sign = (wide_bits)(size < first);
            sum = multiply_and_add(sum, gamma, LOAD(wide, a->plus + i)), size = find_sizes(sum);
            error = multiply_and_add(size, repeat(3.5f * 0x1p-24f), first * find_sizes(gamma));
            error = (wide)((wide_bits)error | ((is_tiny | has_no_sign) & 0x7f800000u)); /* infinity or NaN */
        } else {
            error = multiply_and_add(size, repeat(4.5f * 0x1p-24f), off);
        }
        const wide_bits sign = (wide_bits)sum & 0x80000000u;
        const wide near = (wide)((wide_bits)(size - error) ^ sign), far = (wide)((wide_bits)(size + error) ^ sign);
        uint32_t undecided;
        const halves results = narrow_ends(near, far, out, &undecided);
        memcpy(y + 2 * i, &results, sizeof results);
        if (__builtin_expect(undecided != 0, false)) m->undecided[count] = undecided, m->places[count] = i, count++;
    }
    return count;
}

/* Calculate results as doubles; return whether some are missed, and note which. */
ALWAYS int64_t apply_exact(struct memory *m, const struct line *line, const double *x, double *results, bool across,
                           bool centred, bool affine, bool beta)
{
    const struct operands *o = &m->operands;
    const struct affine *a = &m->affine;
    const ptrdiff_t n = line->n, g = line->g;
    int64_t any = 0, *missed = m->missed;
#pragma omp simd reduction(| : any)
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t k = g + i * across;
        const double value = x[i];
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
        int64_t miss = !centred & (size < 0x1p-600) & (value != 0.0);
        miss |= !(size <= (centred ? 8.0 : 0x1p600));
        if (affine) {
            const double cut = 0x1.8p30;
            const double first = centred ? (y + cut) - cut : from_bits(get_bits(y) & TOP_BITS);
            t = t + (y - first);
            y = first * a->top[i];
            t = t * a->gamma[i] + first * a->low[i];
        }
        double error = !centred ? fabs(y) * (beta ? 0x1p-71 : 0x1p-74) : affine ? a->step[i] * 0x1p-70 : 0x1p-72;
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
            low = low == 0.0 ? value * (affine ? a->gamma[i] : 1.0) : low;
        else if (!affine) { /* a value that is the mean becomes 0; -0 keeps its sign */
            const int64_t zero = (value == o->exact[k]) & (size == 0.0) & (get_bits(value) != INT64_MIN);
            low = zero ? 0.0 : low;
            miss &= !zero;
        }
        results[i] = low;
        missed[i] = -miss;
        any |= miss;
    }
    return any;
}

/* Note which of n results are halfway between two numbers of a kind that they become; return whether some are. */
static int64_t miss_middles(int64_t *missed, const double *results, enum kind out, ptrdiff_t n)
{
    int64_t any = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const int64_t miss = has_middle(results[i], 0.0, out);
        missed[i] |= -miss;
        any |= miss;
    }
    return any;
}
