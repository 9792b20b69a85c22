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
    double raw[2 * LEAF]; /* a leaf and a line of LANES */
    double values[SHORT * BATCH];
};

/* Spread a parameter over values i to i + n of a group. */
static void spread(const struct parameter *p, ptrdiff_t group, ptrdiff_t i, ptrdiff_t n, double other, double *to)
{
    if (!p->values) {
        for (ptrdiff_t k = 0; k < n; k++) to[k] = other;
        return;
    }
    const double *from = p->values + p->starts[group];
    for (ptrdiff_t k = 0; k < n;) {
        const double *value = from + (i + k) / p->span;
        const ptrdiff_t rest = p->span - (i + k) % p->span, end = rest < n - k ? k + rest : n;
        if (p->span == 1) memcpy(to, value, (size_t)n * sizeof *to), k = n;
        for (; k < end; k++) to[k] = *value;
    }
}

/* Gamma and beta of values i to i + n of a group; they are still there if they are those of the last. */
static const struct affine *find_affine(const struct task *task, struct memory *m, ptrdiff_t group, ptrdiff_t i, ptrdiff_t n)
{
    const struct parameter *gamma = &task->gamma, *beta = &task->beta;
    if (!gamma->values && !beta->values) return NULL;
    const double *at[2] = {gamma->values ? gamma->values + gamma->starts[group] : NULL,
                           beta->values ? beta->values + beta->starts[group] : NULL};
    if (m->holds.n == n && m->holds.i == i && m->holds.at[0] == at[0] && m->holds.at[1] == at[1]) return &m->affine;
    spread(gamma, group, i, n, 1.0, m->affine.gamma);
    spread(beta, group, i, n, -0.0, m->affine.beta);
    prepare_affine(&m->affine, n, task->rule.exact_results);
    m->holds.at[0] = at[0], m->holds.at[1] = at[1], m->holds.i = i, m->holds.n = n;
    return &m->affine;
}

/* Gamma and beta of a line that begins with value i of neighbours; they are still there if they are those of the last. */
static const struct affine *find_affine_across(const struct task *task, struct memory *m, ptrdiff_t first, const struct lines *lines, ptrdiff_t i)
{
    const struct parameter *parameters[2] = {&task->gamma, &task->beta};
    double *const to[2] = {m->affine.gamma, m->affine.beta};
    const int wide = lines->groups * lines->together;
    bool still = i > 0;
    for (int k = 0; k < 2; k++) still = still && (!parameters[k]->values || i % parameters[k]->span);
    if (!task->gamma.values && !task->beta.values) return NULL;
    if (still) return &m->affine;
    m->holds.n = 0;
    for (int k = 0; k < 2; k++) {
        const struct parameter *p = parameters[k];
        for (int g = 0; g < wide; g++)
            to[k][g] = p->values ? p->values[p->starts[first + g % lines->groups] + i / p->span] : k ? -0.0 : 1.0;
    }
    prepare_affine(&m->affine, wide, task->rule.exact_results);
    return &m->affine;
}

/* Leave one value to Python, or its group, if there is no room. */
static void miss(struct task *task, int g, ptrdiff_t number, double x)
{
    struct batch *b = task->batch;
    if (b->left[g] || (task->selected && !task->selected[number])) return;
    if (task->missed_count == task->missed_most) {
        b->left[g] = -1;
        return;
    }
    struct missed *missed = task->missed + task->missed_count++;
    missed->number = (double)number, missed->x = x;
    for (int k = 0; k < 5; k++) missed->known[k] = b->known[k][g];
}

/* Values that are worked on together: some of one group, or a line of neighbours. */
struct piece {
    const char *from;
    const void *x; /* the same, if they are loaded */
    char *to;
    ptrdiff_t step, out_step, n; /* from value to value in memory, and how many they are */
    int g;                       /* the number of the group in the batch, or of the first of them */
    bool across;
    ptrdiff_t number; /* of the first value, in all groups */
    const struct affine *affine;
};

static void write_piece(struct task *task, struct memory *m, const struct piece *p, int groups)
{
    const bool exact = task->rule.exact_results, gamma = task->gamma.values, beta = task->beta.values;
    const enum kind kind = task->out.kind;
    const bool direct = p->out_step == SIZES[kind] && (kind == F64 || (!exact && kind != F16));
    enum kind in = task->in.kind == F64 ? F64 : F32;
    const void *x = p->x ? p->x : load_values(&task->in, p->from, p->step, p->n, m->raw);
    void *y = direct ? (void *)p->to : m->y;
    if (exact && in == F32) {
        for (ptrdiff_t k = 0; k < p->n; k++) m->x[k] = (double)((const float *)x)[k];
        x = m->x, in = F64;
    }
    const int64_t any = exact
        ? apply_exactly(x, y, p->n, &m->operands, p->g, p->across, p->affine, task->rule.centred, gamma, beta, m->missed)
        : apply_shortly(x, in, y, direct ? kind : F64, p->n, &m->operands, p->g, p->across, p->affine, m->missed);
    const ptrdiff_t n = task->in.parts * task->in.shape[2];
    for (ptrdiff_t k = 0; any && k < p->n; k++)
        if (m->missed[k]) miss(task, p->g + (p->across ? (int)k : 0), p->number + (p->across ? k % groups * n + k / groups : k), get(x, in, k));
    if (!direct) store_values(p->to, kind, p->out_step, m->y, p->n);
}

/* Write neighbours line by line. */
static void write_across(struct task *task, struct memory *m, const char *from, char *to, ptrdiff_t first, const struct lines *lines)
{
    const ptrdiff_t *in = task->in.strides, *out = task->out.strides, n = task->in.shape[2];
    const ptrdiff_t size = BATCH * (task->in.kind == F64 ? 8 : 4);
    const bool loaded = !task->given[0] && lines->count <= SHORT && task->in.parts == 1;
    for (ptrdiff_t line = 0; line < lines->count; line++) {
        const ptrdiff_t i = line * lines->together;
        const struct piece piece = {
            .from = from + i * in[2], .x = loaded ? (char *)m->values + line * size : NULL, .to = to + i * out[2], .step = in[1], .out_step = out[1], .n = count_line(lines, n, line),
            .across = true, .number = first * n + i, .affine = find_affine_across(task, m, first, lines, i),
        };
        write_piece(task, m, &piece, lines->groups);
    }
}

/* Write groups one after the other. */
static void write_along(struct task *task, struct memory *m, const char *from, char *to, ptrdiff_t first, int count)
{
    const struct view *in = &task->in, *out = &task->out;
    for (int g = 0; g < count; g++, from += in->strides[1], to += out->strides[1]) {
        for (ptrdiff_t part = 0; part < in->parts; part++) {
            for (ptrdiff_t i = 0; i < in->shape[2] && !task->batch->left[g]; i += PIECE) {
                const ptrdiff_t n = in->shape[2] - i < PIECE ? in->shape[2] - i : PIECE, at = part * in->shape[2] + i;
                const struct piece piece = {
                    .from = from + part * in->part_stride + i * in->strides[2], .step = in->strides[2],
                    .to = to + part * out->part_stride + i * out->strides[2], .out_step = out->strides[2],
                    .n = n, .g = g, .number = (first + g) * in->parts * in->shape[2] + at,
                    .affine = find_affine(task, m, first + g, at, n),
                };
                write_piece(task, m, &piece, 1);
            }
        }
    }
}

/* Whether neighbours lie side by side in memory, and the values of a group do not. */
static bool stands(const struct view *view)
{
    return view->shape[1] > 1 && view->parts == 1 && view->strides[1] == SIZES[view->kind] && view->strides[2] != SIZES[view->kind];
}

/* Find mean and divisor of groups `first` and behind; those that are not decided are left. */
static void find_divisors(const struct task *task, struct memory *m, const char *from, ptrdiff_t first, int count, const struct lines *lines)
{
    struct batch *b = task->batch;
    const bool centred = task->rule.centred;
    if (task->given[0]) {
        for (int k = 0; k < 5; k++) memcpy(b->known[k], task->given[k] + first, (size_t)count * sizeof(double));
        memset(b->left, 0, sizeof b->left);
    } else {
        if (lines) measure_across(&task->in, from, lines, centred, b, m->values, m->raw);
        for (int g = 0; g < count && !lines; g++)
            measure_group(&task->in, from + g * task->in.strides[1], centred, b, g, m->raw);
        for (int k = 0; k < 2 && task->counts[k]; k++) memcpy(b->counts[k], task->counts[k] + first, (size_t)count * sizeof(double));
        for (int g = 0; g < count; g += LANES) {
            if (task->sums_only) order_lanes(b, g);
            else solve_lanes(&task->rule, b, g, task->results[2] || task->results[3]);
        }
    }
    for (int g = count; lines && g < count * lines->together; g++) {
        for (int k = 0; k < 5; k++) b->known[k][g] = b->known[k][g - count];
        b->left[g] = b->left[g - count];
    }
}

/* Whether a parameter is one number for each group. */
static bool is_even(const struct parameter *p, ptrdiff_t n) { return !p->values || p->span >= n; }

static void work_on_batch(struct task *task, struct memory *m, ptrdiff_t outer, ptrdiff_t inner, int count)
{
    const struct view *in = &task->in, *out = &task->out;
    struct batch *b = task->batch;
    const ptrdiff_t n = in->shape[2], first = outer * in->shape[1] + inner;
    const char *from = in->data + outer * in->strides[0] + inner * in->strides[1];
    char *to = out->data ? out->data + outer * out->strides[0] + inner * out->strides[1] : NULL;
    const bool columns = stands(in) && (!to || stands(out)), across = columns || (count > 1 && in->parts == 1 && n < SHORT);
    const bool dense = is_even(&task->gamma, n) && is_even(&task->beta, n) && (!to || out->strides[2] == count * SIZES[out->kind]);
    const struct lines lines = find_lines(in, count, columns && dense);
    find_divisors(task, m, from, first, count, across ? &lines : NULL);
    if (to) {
        if (task->rule.exact_results) prepare_exact(b, &m->operands);
        else prepare_short(b, &m->operands);
        if (across) write_across(task, m, from, to, first, &lines);
        else write_along(task, m, from, to, first, count);
    }
    const double *found[7] = {b->statistics[0], b->statistics[1], b->statistics[2], b->statistics[3]};
    for (int k = 0; k < 7 && task->sums_only; k++) found[k] = k < 3 ? b->sum[k] : b->square[k - 3];
    for (int k = 0; k < 7; k++)
        if (task->results[k]) memcpy(task->results[k] + first, found[k], (size_t)count * sizeof(double));
    for (int g = count; across && g < count * lines.together; g++) b->left[g % count] |= b->left[g];
    for (int g = 0; g < count; g++)
        if (b->left[g]) task->left[task->left_count++] = first + g;
}

/* If there is but one neighbour, take what is further away for neighbours. */
static void exchange(struct view *view)
{
    const struct view other = *view;
    if (view->shape[1] > 1) return;
    for (int i = 0; i < 2; i++) view->shape[i] = other.shape[1 - i], view->strides[i] = other.strides[1 - i];
}

/* Values that a batch holds at most, so that they lie in the cache when they are written. */
enum { MOST_VALUES = 16384 };

static void normalize(struct task *task)
{
    struct memory *m = task->memory;
    exchange(&task->in), exchange(&task->out);
    const ptrdiff_t groups = task->in.shape[1], n = task->in.parts * task->in.shape[2];
    const ptrdiff_t fit = n < MOST_VALUES ? MOST_VALUES / n : 1;
    const ptrdiff_t most = fit < BATCH && !stands(&task->in) ? fit : BATCH;
    memset(task->batch, 0, sizeof *task->batch);
    for (int g = 0; g < BATCH; g++) task->batch->counts[0][g] = (double)n, task->batch->counts[1][g] = task->rule.freedom;
    m->holds.n = 0;
    for (ptrdiff_t outer = 0; outer < task->in.shape[0]; outer++)
        for (ptrdiff_t first = 0; first < groups; first += most)
            work_on_batch(task, m, outer, first, (int)(groups - first < most ? groups - first : most));
}
