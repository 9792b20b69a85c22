/* Whole groups, batch by batch: measured, solved and written while they lie in the nearest cache. This file is
 * compiled once for each set of instructions; none of them changes a bit. */
#include "applying.h"
#include "solving.h"

/* Values that a batch of rows holds at most, so that they lie in the cache when they are written. */
enum { MOST_VALUES = 16384 };

/* Of which line `affine` holds gamma and beta. */
struct place {
    const double *at[2];
    ptrdiff_t phase[2], group, n;
};

/* What batches are worked on in. */
struct memory {
    struct batch batch;
    struct operands operands;
    struct affine affine;
    struct place place;
    int64_t missed[PIECE];
    double y[PIECE], x[PIECE];
    double values[SHORT * BATCH]; /* as they are measured: a leaf and more, or neighbours */
};

/* Values that are worked on together: some of one group, or a line of neighbours. */
struct line {
    const char *from, *loaded; /* the values, and the same as they were measured, or NULL */
    char *to;
    ptrdiff_t step, out_step, n; /* from value to value in memory, and how many they are */
    ptrdiff_t group, i;          /* the number of the first group, and which of its values is the first */
    int g, groups;               /* its number in the batch; how many groups take turns, 0: all values are of one */
};

/* Gamma and beta of a line; they are still there if they are those of the last. */
static const struct affine *find_affine(const struct task *task, struct memory *m, const struct line *line)
{
    struct place place = {.group = line->groups ? line->group : -1, .n = line->n};
    for (int k = 0; k < 2; k++) {
        const struct parameter *p = &task->parameters[k];
        if (!p->values) continue;
        place.at[k] = p->values + p->starts[line->group] + line->i / p->span;
        place.phase[k] = line->groups ? 0 : line->i % p->span;
    }
    if (!place.at[0] && !place.at[1]) return NULL;
    if (!memcmp(&place, &m->place, sizeof place)) return &m->affine;
    m->place = place;
    for (int k = 0; k < 2; k++) {
        const struct parameter *p = &task->parameters[k];
        const double *value = place.at[k];
        double *to = k ? m->affine.beta : m->affine.gamma;
        if (!value)
            for (ptrdiff_t j = 0; j < line->n; j++) to[j] = k ? -0.0 : 1.0;
        else if (line->groups)
            for (ptrdiff_t j = 0; j < line->n; j++)
                to[j] = p->values[p->starts[line->group + j % line->groups] + line->i / p->span];
        else
            for (ptrdiff_t j = 0, next = p->span - place.phase[k]; j < line->n; value++, next += p->span)
                for (; j < next && j < line->n; j++) to[j] = *value;
    }
    prepare_affine(&m->affine, line->n, task->rule.exact_results);
    return &m->affine;
}

/* Leave one value to Python, or its group, if there is no room. */
static void miss(struct task *task, struct batch *b, int g, ptrdiff_t number, double x)
{
    if (b->left[g] || (task->selected && !task->selected[number])) return;
    if (task->missed_count == task->missed_most) {
        b->left[g] = -1;
        return;
    }
    struct missed *missed = task->missed + task->missed_count++;
    missed->number = (double)number, missed->x = x;
    for (int k = 0; k < 5; k++) missed->known[k] = b->known[k][g];
}

static void write_line(struct task *task, struct memory *m, const struct line *line)
{
    const bool exact = task->rule.exact_results, gamma = task->parameters[0].values, beta = task->parameters[1].values;
    const enum kind kind = task->out.kind;
    const bool direct = line->out_step == SIZES[kind] && (kind == F64 || (!exact && kind != F16));
    const struct affine *affine = find_affine(task, m, line);
    enum kind in = task->in.kind == F64 ? F64 : F32;
    const void *x = is_loaded(task->in.kind, line->step) ? line->from : line->loaded ? line->loaded : (char *)m->values;
    void *y = direct ? line->to : (char *)m->y;
    if (x == m->values && !line->loaded) load_values(line->from, task->in.kind, line->step, line->n, m->values);
    if (exact && in == F32) {
        for (ptrdiff_t k = 0; k < line->n; k++) m->x[k] = (double)((const float *)x)[k];
        x = m->x, in = F64;
    }
    const int64_t any = exact
        ? apply_exactly(x, y, line->n, &m->operands, line->g, line->groups, affine, task->rule.centred, gamma, beta, m->missed)
        : apply_shortly(x, in, y, direct ? kind : F64, line->n, &m->operands, line->g, line->groups, affine, m->missed);
    const ptrdiff_t n = task->in.parts * task->in.shape[2], number = line->group * n + line->i;
    for (ptrdiff_t k = 0, by = line->groups; any && k < line->n; k++) {
        if (!m->missed[k]) continue;
        if (by) miss(task, &m->batch, (int)k, number + k % by * n + k / by, get(x, in, k));
        else miss(task, &m->batch, line->g, number + k, get(x, in, k));
    }
    if (!direct) store_values(line->to, kind, line->out_step, m->y, line->n);
}

/* Write group g of a batch and its neighbours, if there are more `groups`, line by line, `together` values of each at
 * most. `loaded` are the lines as they were measured, if they are still there. */
static void write_lines(struct task *task, struct memory *m, struct line line, ptrdiff_t together, const char *loaded)
{
    const struct view *in = &task->in, *out = &task->out;
    const ptrdiff_t n = in->shape[2], axis = line.groups ? 1 : 2, each = line.groups ? line.groups : 1;
    const struct line first = line;
    line.step = in->strides[axis], line.out_step = out->strides[axis];
    for (ptrdiff_t part = 0; part < in->parts; part++) {
        for (ptrdiff_t i = 0; i < n && !(line.groups == 0 && m->batch.left[line.g]); i += together) {
            line.from = first.from + part * in->part_stride + i * in->strides[2];
            line.to = first.to + part * out->part_stride + i * out->strides[2];
            line.n = (n - i < together ? n - i : together) * each, line.i = part * n + i;
            line.loaded = loaded ? loaded + i / together * BATCH * find_size(in) : NULL;
            write_line(task, m, &line);
        }
    }
}

/* Whether neighbours lie side by side in memory, and the values of a group do not. */
static bool stands(const struct view *view)
{
    const ptrdiff_t size = SIZES[view->kind];
    return view->shape[1] > 1 && view->parts == 1 && view->strides[1] == size && view->strides[2] != size;
}

/* Whether a parameter is one number for each group. */
static bool is_even(const struct parameter *p, ptrdiff_t n) { return !p->values || p->span >= n; }

/* Measure and solve `count` neighbours, `together` values of each side by side; one by one if that is 0. */
static void solve_batch(struct task *task, struct memory *m, const char *from, ptrdiff_t first, int count, int together)
{
    struct batch *b = &m->batch;
    const bool centred = task->rule.centred, shown = task->results[2] || task->results[3];
    const size_t size = (size_t)count * sizeof(double);
    if (together) measure_across(&task->in, from, count, together, centred, b, (char *)m->values);
    for (int g = 0; g < count && !together; g++)
        measure_group(&task->in, from + g * task->in.strides[1], centred, b, g, m->values);
    for (int k = 0; k < 2 && task->counts[k]; k++) memcpy(b->counts[k], task->counts[k] + first, size);
    for (int g = 0; g < count; g += LANES) {
        struct sums *sums = &b->sums[g / LANES];
        if (!task->sums_only) {
            solve_lanes(&task->rule, b, g, shown);
            continue;
        }
        order_sums(sums);
        memcpy(b->left + g, &sums->left, sizeof sums->left);
    }
    for (int k = 0; k < NUMBERS; k++)
        for (int g = 0; g < count && task->results[k]; g++)
            task->results[k][first + g] = task->sums_only ? b->sums[g / LANES].at[k][g % LANES] : b->statistics[k][g];
}

static void work_on_batch(struct task *task, struct memory *m, ptrdiff_t outer, ptrdiff_t inner, int count)
{
    const struct view *in = &task->in, *out = &task->out;
    struct batch *b = &m->batch;
    const ptrdiff_t n = in->shape[2], first = outer * in->shape[1] + inner;
    const char *from = in->data + outer * in->strides[0] + inner * in->strides[1];
    char *to = out->data ? out->data + outer * out->strides[0] + inner * out->strides[1] : NULL;
    const bool columns = stands(in) && (!to || stands(out)), across = columns || (count > 1 && in->parts == 1 && n < SHORT);
    const bool even = is_even(&task->parameters[0], n) && is_even(&task->parameters[1], n);
    const bool dense = columns && even && (!to || out->strides[2] == count * SIZES[out->kind]);
    const int together = !across ? 0 : dense ? find_together(in, count) : 1;
    memset(b->left, 0, sizeof b->left);
    for (int k = 0; k < 5 && task->given[0]; k++) memcpy(b->known[k], task->given[k] + first, (size_t)count * sizeof(double));
    if (!task->given[0]) solve_batch(task, m, from, first, count, together);
    for (int g = count; g < count * together; g++) { /* of every value of a line */
        for (int k = 0; k < 5; k++) b->known[k][g] = b->known[k][g - count];
        b->left[g] = b->left[g - count];
    }
    if (to) {
        if (task->rule.exact_results) prepare_exact(b, &m->operands);
        else prepare_short(b, &m->operands);
        const char *loaded = !task->given[0] && n <= SHORT * together ? (char *)m->values : NULL;
        struct line line = {.from = from, .to = to, .group = first, .groups = across ? count : 0};
        if (across) write_lines(task, m, line, together, loaded);
        for (; line.g < count && !across; line.g++, line.group++, line.from += in->strides[1], line.to += out->strides[1])
            write_lines(task, m, line, PIECE, NULL);
    }
    for (int g = count; g < count * together; g++) b->left[g % count] |= b->left[g];
    for (int g = 0; g < count; g++)
        if (b->left[g]) task->left[task->left_count++] = first + g;
}

static void normalize(struct task *task)
{
    struct memory *m = task->memory;
    const ptrdiff_t groups = task->in.shape[1], n = task->in.parts * task->in.shape[2];
    const ptrdiff_t fit = n < MOST_VALUES ? MOST_VALUES / n : 1;
    const ptrdiff_t most = fit < BATCH && !stands(&task->in) ? fit : BATCH;
    memset(&m->batch, 0, sizeof m->batch), memset(&m->place, 0, sizeof m->place);
    for (int g = 0; g < BATCH; g++) m->batch.counts[0][g] = (double)n, m->batch.counts[1][g] = task->rule.freedom;
    for (ptrdiff_t outer = 0; outer < task->in.shape[0]; outer++)
        for (ptrdiff_t first = 0; first < groups; first += most)
            work_on_batch(task, m, outer, first, (int)(groups - first < most ? groups - first : most));
}
