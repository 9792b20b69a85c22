/* Whole groups, batch by batch: measured, solved and written while they lie in the nearest cache. This file is
 * compiled once for each set of instructions; none of them changes a bit. */
#include "applying.h"
#include "measuring.h"
#include "solving.h"

/* What a batch is worked on in. */
struct memory {
    struct operands operands;
    struct affine affine;
    struct {
        const double *at[2]; /* where the parameters that `affine` holds begin, and of how many values they are */
        ptrdiff_t i, n;
    } holds;
    int64_t missed[PIECE];
    double y[PIECE], x[PIECE];
    double raw[2 * LEAF];
    double values[SHORT * BATCH], results[SHORT * BATCH];
    char *from[BATCH]; /* where the groups of the batch begin, */
    char *to[BATCH];   /* and their results */
};

/* Find where groups begin. */
static void find_groups(const struct view *view, ptrdiff_t first, int count, char **places)
{
    ptrdiff_t outer = first / view->shape[1], inner = first % view->shape[1];
    for (int g = 0; g < count; g++) {
        places[g] = view->data + outer * view->strides[0] + inner * view->strides[1];
        if (++inner == view->shape[1]) inner = 0, outer++;
    }
}

/* Spread a parameter over values i to i + n of a group. */
static void spread(const struct parameter *p, ptrdiff_t group, ptrdiff_t i, ptrdiff_t n, double other, double *to)
{
    if (!p->values) {
        for (ptrdiff_t k = 0; k < n; k++) to[k] = other;
        return;
    }
    const double *from = p->values + p->starts[group];
    if (p->span == 1) {
        memcpy(to, from + i, (size_t)n * sizeof *to);
        return;
    }
    for (ptrdiff_t k = 0; k < n;) {
        const double value = from[(i + k) / p->span];
        const ptrdiff_t rest = p->span - (i + k) % p->span, end = rest < n - k ? k + rest : n;
        for (; k < end; k++) to[k] = value;
    }
}

static void prepare_affine(const struct task *task, struct affine *a, ptrdiff_t n)
{
    if (!task->rule.exact_results) prepare_short_affine(a, n);
    else if (task->gamma.values) prepare_gamma(a, n);
}

static const struct affine *find_affine(const struct task *task, struct memory *m, ptrdiff_t group, ptrdiff_t i, ptrdiff_t n)
{
    const struct parameter *gamma = &task->gamma, *beta = &task->beta;
    if (!gamma->values && !beta->values) return NULL;
    const double *at[2] = {gamma->values ? gamma->values + gamma->starts[group] : NULL,
                           beta->values ? beta->values + beta->starts[group] : NULL};
    if (m->holds.n == n && m->holds.i == i && m->holds.at[0] == at[0] && m->holds.at[1] == at[1]) return &m->affine;
    spread(gamma, group, i, n, 1.0, m->affine.gamma);
    spread(beta, group, i, n, -0.0, m->affine.beta);
    prepare_affine(task, &m->affine, n);
    m->holds.at[0] = at[0], m->holds.at[1] = at[1], m->holds.i = i, m->holds.n = n;
    return &m->affine;
}

/* Calculate one value again, in pairs; a group of which this does not decide one is left. */
static double calculate_again(const struct task *task, int g, double x, ptrdiff_t group, ptrdiff_t i)
{
    struct batch *b = task->batch;
    const struct parameter *gamma = &task->gamma, *beta = &task->beta;
    struct element e = {.x = x, .centred = task->rule.centred, .has_gamma = gamma->values, .has_beta = beta->values};
    for (int k = 0; k < 3; k++) e.mean[k] = b->mean[k][g];
    for (int k = 0; k < 2; k++) e.divisor[k] = b->divisor[k][g];
    if (e.has_gamma) e.gamma = gamma->values[gamma->starts[group] + i / gamma->span];
    if (e.has_beta) e.beta = beta->values[beta->starts[group] + i / beta->span];
    double y;
    if (!calculate(&e, task->out.kind, &y)) b->left[g] = -1;
    return y;
}

/* Values that are worked on together: value i, i + 1 … of one group, or value i of neighbours. */
struct line {
    const void *x;
    bool is_double; /* x holds doubles; floats otherwise */
    char *to;
    enum kind kind; /* of what is written, in steps of so many bytes */
    ptrdiff_t step, n;
    int g, across; /* its first group's number in the batch; 1 for neighbours, else 0 */
    ptrdiff_t group, i;
    const struct affine *affine;
};

static void write_line(const struct task *task, struct memory *m, const struct line *l)
{
    const struct rule *rule = &task->rule;
    const bool exact = rule->exact_results, gamma = task->gamma.values, beta = task->beta.values;
    const bool direct = l->step == SIZES[l->kind] && (l->kind == F64 || (l->kind == F32 && !exact));
    const enum kind kind = direct ? l->kind : F64;
    enum kind in = l->is_double ? F64 : F32;
    const void *x = l->x;
    void *y = direct ? (void *)l->to : m->y;
    if (exact && !l->is_double) {
        for (ptrdiff_t k = 0; k < l->n; k++) m->x[k] = (double)((const float *)x)[k];
        x = m->x, in = F64;
    }
    const int64_t any =
        exact ? apply_exactly(x, y, l->n, &m->operands, l->g, l->across, l->affine, rule->centred, gamma, beta, m->missed)
              : apply_shortly(x, in, y, kind, l->n, &m->operands, l->g, l->across, l->affine, m->missed);
    for (ptrdiff_t k = 0; any && k < l->n; k++) {
        const int g = l->g + (int)k * l->across;
        if (!m->missed[k] || task->batch->left[g]) continue;
        const double value = calculate_again(task, g, get(x, in, k), l->group + k * l->across, l->i + k * !l->across);
        if (kind == F64) ((double *)y)[k] = value;
        else ((float *)y)[k] = (float)value;
    }
    if (!direct) store_values(l->to, l->kind, l->step, m->y, l->n);
}

/* Write values i to i + n of a part of group number g of a batch. */
static void write_piece(const struct task *task, struct memory *m, int g, ptrdiff_t group, ptrdiff_t part, ptrdiff_t i, ptrdiff_t n)
{
    const struct view *in = &task->in, *out = &task->out;
    const ptrdiff_t at = part * in->shape[2] + i;
    const struct line line = {
        .x = load_values(in, m->from[g] + part * in->part_stride + i * in->strides[2], in->strides[2], n, m->raw),
        .is_double = in->kind == F64,
        .to = m->to[g] + part * out->part_stride + i * out->strides[2],
        .kind = out->kind, .step = out->strides[2], .n = n, .g = g, .group = group, .i = at,
        .affine = find_affine(task, m, group, at, n),
    };
    write_line(task, m, &line);
}

/* Gamma and beta of value i of neighbours; they are still there if they are those of value i - 1. */
static const struct affine *find_affine_across(const struct task *task, struct memory *m, ptrdiff_t first, int count, ptrdiff_t i)
{
    const struct parameter *gamma = &task->gamma, *beta = &task->beta;
    if (!gamma->values && !beta->values) return NULL;
    if (i && (!gamma->values || i % gamma->span) && (!beta->values || i % beta->span)) return &m->affine;
    m->holds.n = 0;
    for (int g = 0; g < count; g++) {
        spread(gamma, first + g, i, 1, 1.0, m->affine.gamma + g);
        spread(beta, first + g, i, 1, -0.0, m->affine.beta + g);
    }
    prepare_affine(task, &m->affine, count);
    return &m->affine;
}

/* Write all values of neighbours that lie side by side in memory, too. */
static void write_columns(const struct task *task, struct memory *m, ptrdiff_t first, int count)
{
    const struct view *in = &task->in, *out = &task->out;
    for (ptrdiff_t i = 0; i < in->shape[2]; i++) {
        const struct line line = {
            .x = load_values(in, m->from[0] + i * in->strides[2], in->strides[1], count, m->raw),
            .is_double = in->kind == F64, .to = m->to[0] + i * out->strides[2], .kind = out->kind, .step = out->strides[1],
            .n = count, .across = 1, .group = first, .i = i, .affine = find_affine_across(task, m, first, count, i),
        };
        write_line(task, m, &line);
    }
}

/* Write values i to i + n of groups that were laid side by side. */
static void write_side_by_side(const struct task *task, struct memory *m, ptrdiff_t first, int count, ptrdiff_t i, ptrdiff_t n)
{
    const struct view *out = &task->out;
    const ptrdiff_t step = out->strides[2];
    for (ptrdiff_t k = 0; k < n; k++) {
        const struct line line = {
            .x = m->values + k * BATCH, .is_double = true, .to = (char *)(m->results + k * BATCH), .kind = F64,
            .step = sizeof(double), .n = count, .across = 1, .group = first, .i = i + k,
            .affine = find_affine_across(task, m, first, count, i + k),
        };
        write_line(task, m, &line);
    }
    for (int g = 0; g < count; g++) {
        if (out->kind == F32 && step == sizeof(float)) {
            float *to = (float *)(void *)m->to[g] + i;
            for (ptrdiff_t k = 0; k < n; k++) to[k] = (float)m->results[k * BATCH + g];
            continue;
        }
        for (ptrdiff_t k = 0; k < n; k++) m->y[k] = m->results[k * BATCH + g];
        store_values(m->to[g] + i * step, out->kind, step, m->y, n);
    }
}

/* Whether neighbours lie side by side in memory, and the values of a group do not. */
static bool stands(const struct view *view)
{
    return view->shape[1] > 1 && view->strides[1] == SIZES[view->kind] && view->strides[2] != SIZES[view->kind];
}

/* Measure the groups of a batch side by side, a few values of each at a time. */
static void measure_columns(const struct view *in, char *const *groups, int count, bool need_sum, struct batch *batch, double *values, void *memory)
{
    const ptrdiff_t n = in->shape[2];
    char *places[BATCH];
    memcpy(places, groups, (size_t)count * sizeof *places);
    forget_sums(batch);
    for (ptrdiff_t part = 0; part < in->parts; part++) {
        for (ptrdiff_t i = 0; i < n; i += SHORT) {
            const ptrdiff_t length = n - i < SHORT ? n - i : SHORT;
            turn(in, places, count, i, length, values, memory);
            measure_side_by_side(values, length, need_sum, in->kind, n < SHORT && in->parts == 1, batch, count);
        }
        for (int g = 0; g < count; g++) places[g] += in->part_stride;
    }
}

/* Find mean and divisor of the groups of a batch; those that are not decided are left. */
static void find_divisors(const struct task *task, struct memory *m, ptrdiff_t first, int count, bool side_by_side)
{
    struct batch *b = task->batch;
    const struct rule *rule = &task->rule;
    if (task->given) {
        for (int k = 0; k < 3; k++) memcpy(b->mean[k], task->given->mean[k] + first, (size_t)count * sizeof(double));
        for (int k = 0; k < 2; k++) memcpy(b->divisor[k], task->given->divisor[k] + first, (size_t)count * sizeof(double));
        memset(b->left, 0, sizeof b->left);
        return;
    }
    if (side_by_side) {
        measure_columns(&task->in, m->from, count, rule->centred, b, m->values, m->raw);
    } else {
        for (int g = 0; g < count; g++) {
            const struct sums sums = measure_group(&task->in, m->from[g], rule->centred, m->raw);
            for (int k = 0; k < 3; k++) b->sum[k][g] = sums.sum[k];
            for (int k = 0; k < 4; k++) b->square[k][g] = sums.square[k];
            b->left[g] = sums.extreme ? -1 : 0;
        }
    }
    for (int g = 0; g < count; g += LANES) solve_lanes(rule, b, g);
}

static void work_on_batch(struct task *task, struct memory *m, ptrdiff_t first, int count)
{
    struct batch *b = task->batch;
    const ptrdiff_t n = task->in.shape[2];
    const ptrdiff_t parts = task->in.parts;
    const bool columns = parts == 1 && task->in.shape[0] == 1 && stands(&task->in) && (!task->out.data || stands(&task->out));
    const bool side_by_side = count > 1 && parts == 1 && n < SHORT && !columns;
    find_groups(&task->in, first, count, m->from);
    find_divisors(task, m, first, count, side_by_side || columns);
    if (task->out.data) {
        find_groups(&task->out, first, count, m->to);
        if (task->rule.exact_results) prepare_exact(b, &m->operands);
        else prepare_short(b, &m->operands);
        const ptrdiff_t most = side_by_side ? SHORT : PIECE;
        if (columns) write_columns(task, m, first, count);
        for (ptrdiff_t part = 0; part < parts && !columns; part++) {
            for (ptrdiff_t i = 0; i < n; i += most) {
                const ptrdiff_t length = n - i < most ? n - i : most;
                if (side_by_side) {
                    if (task->given) turn(&task->in, m->from, count, i, length, m->values, m->raw);
                    write_side_by_side(task, m, first, count, i, length);
                } else {
                    for (int g = 0; g < count; g++)
                        if (!b->left[g]) write_piece(task, m, g, first + g, part, i, length);
                }
            }
        }
    }
    const ptrdiff_t groups = task->in.shape[0] * task->in.shape[1];
    for (int k = 0; task->statistics && k < 4; k++)
        memcpy(task->statistics + k * groups + first, b->statistics[k], (size_t)count * sizeof(double));
    for (int g = 0; g < count; g++)
        if (b->left[g]) task->left[task->left_count++] = first + g;
}

/* Values that a batch holds at most, so that they lie in the cache when they are written. */
enum { MOST_VALUES = 16384 };

static void normalize(struct task *task)
{
    struct memory *m = task->memory;
    const ptrdiff_t groups = task->in.shape[0] * task->in.shape[1], n = task->in.parts * task->in.shape[2];
    const ptrdiff_t fit = n < MOST_VALUES ? MOST_VALUES / n : 1;
    const ptrdiff_t most = fit < BATCH && !stands(&task->in) ? fit : BATCH;
    memset(task->batch, 0, sizeof *task->batch);
    m->holds.n = 0;
    for (ptrdiff_t first = 0; first < groups; first += most)
        work_on_batch(task, m, first, (int)(groups - first < most ? groups - first : most));
}

/* Measure groups alone: 7 doubles for each, and whether they do not hold the sums. */
static void measure(const struct view *rows, double *sums, bool *extreme, bool need_sum)
{
    double memory[2 * LEAF], values[SHORT * BATCH];
    struct batch batch;
    char *places[BATCH];
    const ptrdiff_t groups = rows->shape[0] * rows->shape[1], most = stands(rows) ? BATCH : 1;
    for (ptrdiff_t first = 0; first < groups; first += most) {
        const int count = (int)(groups - first < most ? groups - first : most);
        find_groups(rows, first, count, places);
        if (count > 1) {
            measure_columns(rows, places, count, need_sum, &batch, values, memory);
        } else {
            const struct sums of = measure_group(rows, places[0], need_sum, memory);
            for (int k = 0; k < 3; k++) batch.sum[k][0] = of.sum[k];
            for (int k = 0; k < 4; k++) batch.square[k][0] = of.square[k];
            batch.left[0] = of.extreme;
        }
        for (int k = 0; k < 3; k++) memcpy(sums + k * groups + first, batch.sum[k], (size_t)count * sizeof(double));
        for (int k = 0; k < 4; k++) memcpy(sums + (3 + k) * groups + first, batch.square[k], (size_t)count * sizeof(double));
        for (int g = 0; g < count; g++) extreme[first + g] = batch.left[g] != 0;
    }
}
