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

static const struct affine *find_affine(const struct task *task, struct memory *m, ptrdiff_t group, ptrdiff_t i, ptrdiff_t n)
{
    const struct parameter *gamma = &task->gamma, *beta = &task->beta;
    if (!gamma->values && !beta->values) return NULL;
    const double *at[2] = {gamma->values ? gamma->values + gamma->starts[group] : NULL,
                           beta->values ? beta->values + beta->starts[group] : NULL};
    if (m->holds.n == n && m->holds.i == i && m->holds.at[0] == at[0] && m->holds.at[1] == at[1]) return &m->affine;
    spread(gamma, group, i, n, 1.0, m->affine.gamma);
    spread(beta, group, i, n, -0.0, m->affine.beta);
    if (task->rule.exact_results && gamma->values) prepare_gamma(&m->affine, n);
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

/* Write values i to i + n of group number g of a batch. */
static void write_piece(const struct task *task, struct memory *m, int g, ptrdiff_t group, ptrdiff_t i, ptrdiff_t n)
{
    const struct rule *rule = &task->rule;
    const struct view *out = &task->out;
    const struct affine *a = find_affine(task, m, group, i, n);
    const void *x = load_values(&task->in, m->from[g], i, n, m->raw);
    char *to = m->to[g] + i * out->strides[2];
    const bool is_double = task->in.kind == F64;
    int64_t any;
    if (rule->exact_results) {
        const double *values = x;
        if (!is_double) {
            for (ptrdiff_t k = 0; k < n; k++) m->x[k] = (double)((const float *)x)[k];
            values = m->x;
        }
        const bool direct = out->kind == F64 && out->strides[2] == sizeof(double);
        double *y = direct ? (double *)(void *)to : m->y;
        any = apply_exactly(values, y, n, &m->operands, g, 0, a, rule->centred, task->gamma.values, task->beta.values, m->missed);
        for (ptrdiff_t k = 0; any && k < n; k++)
            if (m->missed[k]) y[k] = calculate_again(task, g, values[k], group, i + k);
        if (!direct) store_values(to, out->kind, out->strides[2], y, n);
        return;
    }
    const bool direct = out->kind == F32 && out->strides[2] == sizeof(float);
    void *y = direct ? (void *)to : m->y;
    any = apply_shortly(x, is_double ? F64 : F32, y, direct ? F32 : F64, n, &m->operands, g, 0, a, m->missed);
    for (ptrdiff_t k = 0; a && any && k < n; k++) {
        if (!m->missed[k]) continue;
        const double value = calculate_again(task, g, get(x, is_double ? F64 : F32, k), group, i + k);
        if (direct) ((float *)y)[k] = (float)value;
        else m->y[k] = value;
    }
    if (!direct) store_values(to, out->kind, out->strides[2], m->y, n);
}

/* Write a batch of short groups, which lie side by side. */
static void write_side_by_side(const struct task *task, struct memory *m, ptrdiff_t first, int count)
{
    const struct rule *rule = &task->rule;
    const struct view *out = &task->out;
    const ptrdiff_t n = task->in.shape[2];
    const bool affine = task->gamma.values || task->beta.values;
    struct affine *a = affine ? &m->affine : NULL;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *x = m->values + i * BATCH;
        double *y = m->results + i * BATCH;
        for (int g = 0; affine && g < count; g++) {
            spread(&task->gamma, first + g, i, 1, 1.0, a->gamma + g);
            spread(&task->beta, first + g, i, 1, -0.0, a->beta + g);
        }
        if (rule->exact_results && task->gamma.values) prepare_gamma(a, count);
        const int64_t any =
            rule->exact_results
                ? apply_exactly(x, y, count, &m->operands, 0, 1, a, rule->centred, task->gamma.values, task->beta.values, m->missed)
                : apply_shortly(x, F64, y, F64, count, &m->operands, 0, 1, a, m->missed);
        for (int g = 0; any && g < count; g++)
            if (m->missed[g] && !task->batch->left[g]) y[g] = calculate_again(task, g, x[g], first + g, i);
    }
    m->holds.n = 0;
    if (out->kind == F32 && out->strides[2] == sizeof(float)) {
        for (int g = 0; g < count; g++) {
            float *to = (float *)(void *)m->to[g];
            for (ptrdiff_t i = 0; i < n; i++) to[i] = (float)m->results[i * BATCH + g];
        }
        return;
    }
    for (int g = 0; g < count; g++) {
        for (ptrdiff_t i = 0; i < n; i++) m->y[i] = m->results[i * BATCH + g];
        store_values(m->to[g], out->kind, out->strides[2], m->y, n);
    }
}

/* Lay a batch of short groups side by side. */
static void turn(const struct task *task, struct memory *m, int count)
{
    const ptrdiff_t n = task->in.shape[2];
    if (count < BATCH) memset(m->values, 0, sizeof m->values);
    for (int g = 0; g < count; g++) {
        const void *x = load_values(&task->in, m->from[g], 0, n, m->raw);
        if (task->in.kind == F64)
            for (ptrdiff_t i = 0; i < n; i++) m->values[i * BATCH + g] = ((const double *)x)[i];
        else
            for (ptrdiff_t i = 0; i < n; i++) m->values[i * BATCH + g] = (double)((const float *)x)[i];
    }
}

static void work_on_batch(struct task *task, struct memory *m, ptrdiff_t first, int count)
{
    struct batch *b = task->batch;
    const struct rule *rule = &task->rule;
    const ptrdiff_t n = task->in.shape[2];
    const bool side_by_side = n < SHORT && count > 1;
    find_groups(&task->in, first, count, m->from);
    if (task->out.data) find_groups(&task->out, first, count, m->to);
    if (side_by_side) {
        turn(task, m, count);
        measure_side_by_side(m->values, n, rule->centred, task->in.kind == F64, b, count);
    } else {
        for (int g = 0; g < count; g++) {
            const struct sums sums = measure_group(&task->in, m->from[g], rule->centred, m->raw);
            for (int k = 0; k < 3; k++) b->sum[k][g] = sums.sum[k];
            for (int k = 0; k < 4; k++) b->square[k][g] = sums.square[k];
            b->left[g] = sums.extreme ? -1 : 0;
        }
    }
    for (int g = 0; g < count; g += LANES) solve_lanes(rule, b, g);
    if (task->out.data) {
        if (rule->exact_results) prepare_exact(b, &m->operands);
        else prepare_short(b, &m->operands);
        if (side_by_side) {
            write_side_by_side(task, m, first, count);
        } else {
            for (ptrdiff_t i = 0; i < n; i += PIECE)
                for (int g = 0; g < count; g++)
                    if (!b->left[g]) write_piece(task, m, g, first + g, i, n - i < PIECE ? n - i : PIECE);
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
    const ptrdiff_t groups = task->in.shape[0] * task->in.shape[1], n = task->in.shape[2];
    const ptrdiff_t fit = n < MOST_VALUES ? MOST_VALUES / n : 1, most = fit < BATCH ? fit : BATCH;
    memset(task->batch, 0, sizeof *task->batch);
    m->holds.n = 0;
    for (ptrdiff_t first = 0; first < groups; first += most)
        work_on_batch(task, m, first, (int)(groups - first < most ? groups - first : most));
}

/* Measure groups alone: 7 doubles for each, and whether they do not hold the sums. */
static void measure(const struct view *rows, double *sums, bool *extreme, bool need_sum)
{
    double memory[2 * LEAF];
    const ptrdiff_t groups = rows->shape[0] * rows->shape[1];
    for (ptrdiff_t group = 0; group < groups; group++) {
        char *place;
        find_groups(rows, group, 1, &place);
        const struct sums of = measure_group(rows, place, need_sum, memory);
        for (int k = 0; k < 3; k++) sums[k * groups + group] = of.sum[k];
        for (int k = 0; k < 4; k++) sums[(3 + k) * groups + group] = of.square[k];
        extreme[group] = of.extreme;
    }
}
