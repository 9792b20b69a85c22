/* Whole groups, batch by batch: measured, solved and written while they lie in the nearest cache. This file is
 * compiled once for each set of instructions; none of them changes a bit. */
#include "applying.h"
#include "solving.h"

/* Values that a batch of rows holds at most, so that they lie in the cache when they are written. */
enum { MOST_VALUES = 16384 };

/* Find gamma and beta of a line, or keep those of the line before if they are equal; return false if there are none. */
static bool find_affine(const struct task *task, struct affine *a, const struct line *line)
{
    const struct parameter *p = task->parameters;
    int64_t place[5] = {line->n, line->groups > 1 ? line->group : -1};
    for (int k = 0; k < 2; k++) {
        if (p[k].values) place[2 + k] = p[k].starts[line->group];
        if (p[k].values && p[k].span < task->n) place[4] = line->i;
    }
    if (!p[0].values && !p[1].values) return false;
    if (!memcmp(place, a->place, sizeof place)) return true;
    memcpy(a->place, place, sizeof place);
    for (int k = 0; k < 2; k++, p++) {
        double *to = k ? a->beta : a->gamma;
        const int n = (int)line->n, groups = line->groups;
        for (int j = 0; !p->values && j < n; j++) to[j] = k ? -0.0 : 1.0;
        if (!p->values) continue;
        const int64_t *starts = p->starts + line->group;
        const double *value = p->values + line->i / p->span;
        ptrdiff_t end = (p->span - line->i % p->span) * groups; /* of what has the same value of every group */
        for (int j = 0; j < n; value++, end += p->span * groups) {
            const int until = end < n ? (int)end : n;
            WITH(s, groups > 1, for (; j < until; j++) to[j] = value[starts[s ? j % groups : 0]])
        }
    }
    prepare_affine(a, line->n, task->rule.exact);
    return true;
}

static void write_line(struct task *task, struct memory *m, const struct line *line)
{
    const bool beta = task->parameters[1].values, across = line->groups > 1;
    const bool exact = task->rule.exact, centred = task->rule.centred, affine = find_affine(task, &m->affine, line);
    const enum kind kind = task->out.kind, raw = task->in.kind, loaded = raw == F64 ? F64 : F32;
    const bool whole = exact || kind < F16 || line->n % WIDTH == 0; /* nothing is read or written behind the last */
    const bool half = !exact && kind >= F16 && raw == kind && line->step == SIZES[raw] && !line->loaded && whole;
    const enum kind in = half ? kind : exact ? F64 : loaded;
    const bool direct = line->out_step == SIZES[kind] && (kind == F64 || !exact) && whole;
    const bool there = half || (whole && is_loaded(raw, line->step));
    const char *x = there ? line->from : line->loaded ? line->loaded : (char *)m->values;
    char *y = direct ? line->to : (char *)m->y;
    bool any = !exact && raw == F64; /* short results of doubles are settled one by one */
    int count = 0;
    if (x == (char *)m->values && !line->loaded) load_values(line->from, raw, line->step, line->n, m->values);
    if (exact) {
        double *wide = m->values + SHORT * BATCH / 2; /* behind floats that are loaded */
        for (ptrdiff_t i = 0; i < line->n && loaded == F32; i++) wide[i] = fetch(x + i * SIZES[F32], F32);
        if (loaded == F32) x = (const char *)wide;
        WITH(s, across, WITH(c, centred, WITH(p, affine, WITH(q, p && beta,
            any = apply_exact(m, line, (const double *)x, (double *)y, s, c, p, q)))))
        if (kind != F64) any |= miss_middles(m->missed, (const double *)y, kind, line->n) != 0;
    } else if (!any && kind == F32) {
        WITH(s, across, WITH(c, centred, WITH(p, affine, WITH(q, p && beta,
            any = apply_single(m, line, x, (float *)y, s, c, p, q)))))
    } else if (!any) {
        WITH(s, across, WITH(p, affine, WITH(h, half, WITH(b, kind == BF16,
            count = apply_half(m, line, x, !h ? F32 : b ? BF16 : F16, y, b ? BF16 : F16, s, p)))))
    }
    for (int k = 0; any && k < line->n; k++)
        if (!exact) settle(task, m, line, k, fetch(x + k * SIZES[in], in), y, affine);
        else if (m->missed[k]) miss(task, &m->batch, line, k, fetch(x + k * SIZES[in], in));
    for (int j = 0; j < count; j++)
        for (ptrdiff_t i = m->places[j], k = i; k < i + WIDTH && k < line->n; k++)
            if (m->undecided[j] >> (k - i) & 1) settle(task, m, line, k, fetch(x + k * SIZES[in], in), y, affine);
    if (!direct) store_values(line->to, kind, line->out_step, m->y, exact, line->n);
}

/* Write some groups line by line, `together` values of each at most. `loaded` are the lines as they were measured, if
 * they are still there. */
static void write_lines(struct task *task, struct memory *m, struct line line, ptrdiff_t together, const char *loaded)
{
    const struct view *in = &task->in, *out = &task->out;
    const ptrdiff_t n = in->shape[3], axis = line.groups > 1 ? 1 : 3;
    const struct line first = line;
    line.step = in->strides[axis], line.out_step = out->strides[axis];
    for (ptrdiff_t part = 0; part < in->shape[2]; part++) {
        for (ptrdiff_t i = 0; i < n; i += together) {
            line.from = first.from + part * in->strides[2] + i * in->strides[3];
            line.to = first.to + part * out->strides[2] + i * out->strides[3];
            line.n = (n - i < together ? n - i : together) * line.groups, line.i = part * n + i;
            line.loaded = loaded ? loaded + i / together * BATCH * find_size(in) : NULL;
            write_line(task, m, &line);
        }
    }
}

/* Whether neighbours lie side by side in memory, and the values of a group do not. */
static bool stands(const struct view *view)
{
    const ptrdiff_t size = SIZES[view->kind];
    return view->shape[1] > 1 && view->shape[2] == 1 && view->strides[1] == size && view->strides[3] != size;
}

/* Whether lines of some neighbours lie in memory one behind the other. */
static bool is_dense(const struct view *view, int groups)
{
    return view->strides[1] == SIZES[view->kind] && view->strides[3] == groups * view->strides[1];
}

/* Measure and solve `count` groups from a number on, `together` values of each side by side; one by one if that is 0. */
static void solve_batch(const struct task *task, struct memory *m, const char *from, ptrdiff_t first, int count, int together)
{
    struct batch *b = &m->batch;
    const bool centred = task->rule.centred;
    const size_t size = (size_t)count * sizeof(double);
    for (int g = 0, groups = together ? count : 1; g < count; g += groups)
        measure(&task->in, from + g * task->in.strides[1], groups, together, centred, b, g, (char *)m->values);
    for (int k = 0; k < 2 && task->counts; k++) memcpy(b->counts[k], task->counts + k * task->groups + first, size);
    for (int g = 0; g < count; g += LANES) solve_lanes(task, b, g);
    for (int k = 0; k < NUMBERS; k++)
        if (task->results[k]) memcpy(task->results[k] + first, b->results[k], size);
}

static void work_on_batch(struct task *task, struct memory *m, ptrdiff_t outer, ptrdiff_t inner, int count)
{
    const struct view *in = &task->in, *out = &task->out;
    struct batch *b = &m->batch;
    const ptrdiff_t n = in->shape[3], first = outer * in->shape[1] + inner;
    const char *from = in->data + outer * in->strides[0] + inner * in->strides[1];
    char *to = out->data ? out->data + outer * out->strides[0] + inner * out->strides[1] : NULL;
    const bool columns = stands(in) && (!to || stands(out));
    const bool across = count > 1 && (columns || (in->shape[2] == 1 && n < SHORT));
    const bool dense = across && is_dense(in, count) && (!to || is_dense(out, count));
    int together = across;
    while (dense && 2 * together * count <= BATCH) together *= 2;
    memset(b->left, 0, sizeof b->left);
    if (!task->known) solve_batch(task, m, from, first, count, together);
    for (int k = 0; k < 5; k++) {
        if (task->known) memcpy(b->known[k], task->known + k * task->groups + first, (size_t)count * sizeof(double));
        for (int g = count; g < count * together; g++) b->known[k][g] = b->known[k][g - count];
    }
    if (to) {
        if (task->rule.exact) prepare_exact(b, &m->operands);
        else prepare_short(b, &m->operands);
        const char *loaded = across && !task->known && n <= SHORT * together ? (char *)m->values : NULL;
        struct line line = {.groups = across ? count : 1};
        for (; line.g < count; line.g += line.groups) {
            if (b->left[line.g] && !across) continue;
            line.group = first + line.g;
            line.from = from + line.g * in->strides[1], line.to = to + line.g * out->strides[1];
            write_lines(task, m, line, across ? together : PIECE, loaded);
        }
    }
    for (int g = 0; g < count; g++) task->left[first + g] = b->left[g];
}

static void normalize(struct task *task)
{
    struct memory m;
    const ptrdiff_t groups = task->in.shape[1], fit = task->n < MOST_VALUES ? MOST_VALUES / task->n : 1;
    const ptrdiff_t most = fit < BATCH && !stands(&task->in) ? fit : BATCH;
    memset(&m.batch, 0, sizeof m.batch), memset(m.affine.place, 0, sizeof m.affine.place);
    for (int g = 0; g < BATCH; g++) m.batch.counts[0][g] = (double)task->n, m.batch.counts[1][g] = task->rule.freedom;
    for (ptrdiff_t outer = 0; outer < task->in.shape[0]; outer++)
        for (ptrdiff_t first = 0; first < groups; first += most)
            work_on_batch(task, &m, outer, first, (int)(groups - first < most ? groups - first : most));
}
