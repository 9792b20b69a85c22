/* The module `_normcli_kernel`: checks every buffer, releases the interpreter's lock, and calls the routines. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernel.h"

static const char STAMP[] =
#include "stamp.h"
    ;

static const char FORMATS[] = "dfeH"; /* in the order of enum kind */

static const struct routines *const VARIANTS[] = {
#ifdef HAS_LEVELS
    &routines_v4, &routines_v3,
#endif
    &routines_baseline};
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof VARIANTS[0] };

/* The buffers of a call, in its order, and what each has to be: its formats, of which it has one, and its bytes for each group;
 * 0 for one byte for each value, ANY for any number of bytes. */
enum { IN, OUT, LEFT, MISSED, KNOWN, COUNTS, SELECTED, GAMMA, BETA, GAMMA_STARTS, BETA_STARTS, RESULTS, ANY = -1 };
enum { BUFFERS = RESULTS + NUMBERS };
static const struct {
    const char *formats;
    Py_ssize_t bytes;
    bool is_written;
} KINDS[] = {
    [IN] = {FORMATS, ANY, false},
    [OUT] = {FORMATS, ANY, true},
    [LEFT] = {"?", sizeof(bool), true},
    [MISSED] = {"d", ANY, true},
    [KNOWN] = {"d", 5 * sizeof(double), false},
    [COUNTS] = {"d", 2 * sizeof(double), false},
    [SELECTED] = {"?", 0, false},
    [GAMMA ... BETA] = {"d", ANY, false},
    [GAMMA_STARTS ... BETA_STARTS] = {"lq", sizeof(int64_t), false},
    [RESULTS ... BUFFERS - 1] = {"d", sizeof(double), true},
};

/* Return false, with a ValueError that says what is wrong, unless something holds. */
static bool require(bool holds, const char *otherwise)
{
    if (!holds) PyErr_SetString(PyExc_ValueError, otherwise);
    return holds;
}

/* Take a buffer: of four axes, or without gaps; false with an exception if it is not what it has to be. */
static bool take(Py_buffer *b, PyObject *object, int number)
{
    const int rank = number <= OUT ? 4 : 0;
    const int flags = (rank ? PyBUF_STRIDES : PyBUF_ND) | (KINDS[number].is_written ? PyBUF_WRITABLE : 0);
    if (object == Py_None) return true;
    if (!object || PyObject_GetBuffer(object, b, PyBUF_FORMAT | flags) < 0) return false;
    const char *format = b->format ? b->format : "B";
    bool fits = format[0] && !format[1] && strchr(KINDS[number].formats, format[0]) && (!rank || b->ndim == rank);
    fits = fits && (uintptr_t)b->buf % (size_t)b->itemsize == 0;
    for (int i = 0; fits && i < rank; i++) fits = b->strides[i] % b->itemsize == 0;
    return require(fits, "a buffer is not of the rank or of the format that it should be, or not aligned");
}

static struct view make_view(const Py_buffer *b)
{
    struct view view = {.data = b->buf};
    if (!view.data) return view;
    view.kind = (enum kind)(strchr(FORMATS, b->format[0]) - FORMATS);
    memcpy(view.shape, b->shape, sizeof view.shape), memcpy(view.strides, b->strides, sizeof view.strides);
    return view;
}

/* Whether gamma or beta has a value for every value of every group, or is absent. */
static bool is_inside(const struct parameter *p, Py_ssize_t count, const struct task *task)
{
    if (!p->values) return true;
    const int64_t most = p->span > 0 && p->starts ? count - ((task->n - 1) / p->span + 1) : -1;
    bool inside = most >= 0;
    for (Py_ssize_t g = 0; inside && g < task->groups; g++) inside = p->starts[g] >= 0 && p->starts[g] <= most;
    return inside;
}

/* Complete a task of which rule and spans are known; false with an exception if buffers do not belong together. */
static bool complete(struct task *task, const Py_buffer *held)
{
    const struct rule *rule = &task->rule;
    task->in = make_view(&held[IN]), task->out = make_view(&held[OUT]);
    const ptrdiff_t *shape = task->in.shape;
    task->groups = shape[0] * shape[1], task->n = shape[2] * shape[3];
    task->left = held[LEFT].buf, task->known = held[KNOWN].buf, task->counts = held[COUNTS].buf;
    task->missed = held[MISSED].buf, task->missed_most = held[MISSED].len / (Py_ssize_t)sizeof *task->missed;
    task->selected = held[SELECTED].buf;
    for (int k = 0; k < NUMBERS; k++) task->results[k] = held[RESULTS + k].buf;
    bool fits = task->left && held[IN].len > 0 && (!task->out.data || !memcmp(shape, task->out.shape, sizeof task->in.shape));
    for (int i = 0; fits && i < BUFFERS; i++) {
        const Py_ssize_t bytes = KINDS[i].bytes;
        fits = !held[i].buf || bytes == ANY || held[i].len == task->groups * (bytes ? bytes : task->n);
    }
    for (int k = 0; fits && k < 2; k++) {
        struct parameter *p = &task->parameters[k];
        p->values = held[GAMMA + k].buf, p->starts = held[GAMMA_STARTS + k].buf;
        fits = is_inside(p, held[GAMMA + k].len / (Py_ssize_t)sizeof(double), task);
    }
    const bool known = (task->n < 1 << 26 || task->results[NUMBERS - 1]) && rule->freedom > 0.0 && rule->mode >= INSIDE
        && rule->mode <= FLOOR;
    return require(fits, "a buffer has not as many numbers as its groups need") && require(known, "a rule that is not known");
}

/* normalize(variant, rule, spans, (in, out, left, missed, known, counts, selected, gamma, beta, gamma_starts,
 * beta_starts, *results)) -> int
 *
 * Normalize groups by their mean and divisor, which are known or measured. `left` is set for groups that Python has to work
 * on: nothing that is written of them is right. `missed` takes values of the other groups that Python has to calculate, as
 * seven doubles each: its number among all values, itself, and its group's mean and divisor. Return how many these are. */
static PyObject *normalize(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *buffers, *result = NULL;
    Py_buffer held[BUFFERS] = {{0}};
    struct task task = {.missed_count = 0};
    struct rule *rule = &task.rule;
    int variant;
    if (!PyArg_ParseTuple(args, "i(ddddipp)(nn)O!", &variant, &rule->freedom, &rule->eps, &rule->eps_rest,
                          &rule->of_zero, &rule->mode, &rule->centred, &rule->exact,
                          &task.parameters[0].span, &task.parameters[1].span, &PyTuple_Type, &buffers))
        return NULL;
    const bool runs = variant >= 0 && variant < VARIANT_COUNT && VARIANTS[variant]->runs();
    bool fits = require(runs, "no such variant runs here");
    for (int i = 0; fits && i < BUFFERS; i++) fits = take(&held[i], PyTuple_GetItem(buffers, i), i);
    if (fits && complete(&task, held)) {
        Py_BEGIN_ALLOW_THREADS
        VARIANTS[variant]->normalize(&task);
        Py_END_ALLOW_THREADS
        result = PyLong_FromSsize_t(task.missed_count);
    }
    for (int i = 0; i < BUFFERS; i++) PyBuffer_Release(&held[i]);
    return result;
}

/* Whether buffers hold doubles that are aligned, and a variant runs; false with a ValueError otherwise. */
static bool are_doubles(int variant, const Py_buffer *held, int count)
{
    bool fits = require(variant >= 0 && variant < VARIANT_COUNT && VARIANTS[variant]->runs(), "no such variant runs here");
    for (int i = 0; fits && i < count; i++)
        fits = require(held[i].len > 0 && (uintptr_t)held[i].buf % sizeof(double) == 0, "a buffer is empty, or not aligned");
    return fits;
}

/* round_codes(variant, (digits, least, largest, is_integer, sign_place), y, factors, lost, sums, codes)
 *     -> (error, saturated, flushed, midpoints)
 *
 * Round to codes: as many neighbours share a factor as there are values for each. `lost` takes what each code loses, `sums`
 * the sums of its squares and of those of y, of as many rows each as it has room for. */
static PyObject *round_codes(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *result = NULL;
    Py_buffer held[5] = {{0}};
    struct rounding r = {.groups = 0};
    int variant;
    if (!PyArg_ParseTuple(args, "i(iddpi)y*y*w*w*w*", &variant, &r.digits, &r.least, &r.largest, &r.is_integer, &r.sign_place,
                          &held[0], &held[1], &held[2], &held[3], &held[4]))
        return NULL;
    const Py_ssize_t each = (Py_ssize_t)sizeof(double), n = held[0].len / each;
    r.y = held[0].buf, r.factors = held[1].buf, r.lost = held[2].buf, r.noise = held[3].buf, r.codes = held[4].buf;
    r.groups = held[1].len / each, r.rows = held[3].len / each / 2;
    bool fits = are_doubles(variant, held, 4);
    fits = fits && require(r.rows > 0 && n % r.groups == 0 && n % r.rows == 0 && held[2].len == n * each && held[4].len == n
                           && r.digits >= 0 && r.digits < 8 && r.sign_place >= 0 && r.sign_place < 8,
                           "a buffer has not as many numbers as its groups need");
    if (fits) {
        r.shared = n / r.groups;
        Py_BEGIN_ALLOW_THREADS
        VARIANTS[variant]->round_codes(&r);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("(dLLO)", r.error, (long long)r.saturated, (long long)r.flushed, r.midpoints ? Py_True : Py_False);
    }
    for (int i = 0; i < 5; i++) PyBuffer_Release(&held[i]);
    return result;
}

/* find_largest(variant, y, largest): write the largest magnitude of neighbours, as many as there are for each. */
static PyObject *find_largest(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer held[2] = {{0}};
    int variant;
    if (!PyArg_ParseTuple(args, "iy*w*", &variant, &held[0], &held[1])) return NULL;
    const bool fits = are_doubles(variant, held, 2)
        && require(held[0].len % held[1].len == 0, "a buffer has not as many numbers as its groups need");
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        VARIANTS[variant]->find_largest(held[0].buf, held[0].len / held[1].len, held[1].buf, held[1].len / (Py_ssize_t)sizeof(double));
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < 2; i++) PyBuffer_Release(&held[i]);
    return fits ? Py_BuildValue("") : NULL;
}

static PyMethodDef methods[] = {
    {"normalize", normalize, METH_VARARGS, NULL}, {"round_codes", round_codes, METH_VARARGS, NULL},
    {"find_largest", find_largest, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

/* What Python reads: the stamp of the sources, and by their names the numbers of the variants that run here. */
static int execute(PyObject *module)
{
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (VARIANTS[i]->runs() && PyModule_AddIntConstant(module, VARIANTS[i]->name, i) < 0) return -1;
    return PyModule_AddStringConstant(module, "STAMP", STAMP);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_normcli_kernel", "The compiled kernel of normcli.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__normcli_kernel(void) { return PyModuleDef_Init(&definition); }
