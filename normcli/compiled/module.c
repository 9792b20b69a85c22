/* The module `_normcli_kernel`: checks every buffer, releases the interpreter's lock, and calls the routines. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>

#include "kernel.h"

static const char STAMP[] =
#include "stamp.h"
    ;

static const struct routines *const VARIANTS[] = {
#ifdef HAS_LEVELS
    &routines_v4, &routines_v3,
#endif
    &routines_baseline};
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof VARIANTS[0], MOST_BUFFERS = 15, DOUBLE = sizeof(double), VECTOR = 64 };

/* A task, and the buffers that it reads and writes, which are released together. */
struct call {
    struct task task;
    Py_ssize_t groups, n; /* and values of each */
    Py_buffer held[MOST_BUFFERS];
    int count;
};

/* Return false, with a ValueError that says what is wrong, unless something holds. */
static bool require(bool holds, const char *otherwise)
{
    if (!holds) PyErr_SetString(PyExc_ValueError, otherwise);
    return holds;
}

/* Take a buffer of a rank and of one of some formats, aligned; NULL with an exception otherwise. */
static Py_buffer *take(struct call *call, PyObject *object, const char *formats, int rank, bool writable)
{
    Py_buffer *b = &call->held[call->count];
    if (PyObject_GetBuffer(object, b, PyBUF_FORMAT | PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0)) < 0) return NULL;
    call->count++;
    const char *format = b->format ? b->format : "B";
    bool fits = b->ndim == rank && format[0] && !format[1] && strchr(formats, format[0]) && b->itemsize > 0;
    fits = fits && (uintptr_t)b->buf % (size_t)b->itemsize == 0;
    for (int i = 0; fits && i < rank; i++) fits = b->strides[i] % b->itemsize == 0;
    return require(fits, "a buffer is not of the rank or of the format that it should be, or not aligned") ? b : NULL;
}

/* The same without gaps, of so many bytes, or of any number if that is -1. */
static Py_buffer *take_flat(struct call *call, PyObject *object, const char *formats, Py_ssize_t bytes, bool writable)
{
    Py_buffer *b = take(call, object, formats, 1, writable);
    const bool fits = b && (b->shape[0] < 2 || b->strides[0] == b->itemsize) && (bytes < 0 || b->len == bytes);
    return b && require(fits, "a buffer has gaps, or not as many numbers as groups") ? b : NULL;
}

static bool take_view(struct call *call, PyObject *object, bool writable, struct view *view)
{
    static const char FORMATS[] = "dfeH"; /* in the order of enum kind */
    const Py_buffer *b = take(call, object, FORMATS, 4, writable);
    if (!b) return false;
    view->kind = (enum kind)(strchr(FORMATS, b->format[0]) - FORMATS);
    view->data = b->buf, view->parts = b->shape[2], view->part_stride = b->strides[2];
    for (int i = 0; i < 3; i++) view->shape[i] = b->shape[i < 2 ? i : 3], view->strides[i] = b->strides[i < 2 ? i : 3];
    return require(b->itemsize == SIZES[view->kind] && b->len > 0, "a view is empty, or its numbers are of another length");
}

/* Some doubles of each group, one kind behind the other; or None. */
static bool take_doubles(struct call *call, PyObject *object, int count, const double **to)
{
    if (object == Py_None) return true;
    const Py_buffer *b = take_flat(call, object, "d", count * call->groups * DOUBLE, false);
    for (int k = 0; b && k < count; k++) to[k] = (const double *)b->buf + k * call->groups;
    return b;
}

/* Where each statistic is to be written, or each double of the sums if there are seven; None for nowhere. */
static bool take_results(struct call *call, PyObject *tuple)
{
    const Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    call->task.sums_only = count == NUMBERS;
    if (!require(count == 4 || count == NUMBERS, "neither four statistics nor seven doubles of sums")) return false;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *object = PyTuple_GetItem(tuple, k);
        const Py_buffer *b = object == Py_None ? NULL : take_flat(call, object, "d", call->groups * DOUBLE, true);
        if (object != Py_None && !b) return false;
        call->task.results[k] = b ? b->buf : NULL;
    }
    return true;
}

/* (values, starts, span) or None. */
static bool take_parameter(struct call *call, PyObject *object, struct parameter *p)
{
    PyObject *values, *starts;
    if (object == Py_None) return true;
    if (!PyArg_ParseTuple(object, "OOn", &values, &starts, &p->span)) return false;
    const Py_buffer *v = take_flat(call, values, "d", -1, false);
    const Py_buffer *s = v ? take_flat(call, starts, "lq", call->groups * (Py_ssize_t)sizeof(int64_t), false) : NULL;
    if (!s) return false;
    p->values = v->buf, p->starts = s->buf;
    const int64_t most = p->span > 0 ? v->shape[0] - ((call->n - 1) / p->span + 1) : -1;
    bool inside = s->itemsize == sizeof(int64_t);
    for (Py_ssize_t g = 0; inside && g < call->groups; g++) inside = p->starts[g] >= 0 && p->starts[g] <= most;
    return require(inside, "a parameter has fewer values than its groups need");
}

static bool is_known(const struct task *task, Py_ssize_t n)
{
    const struct rule *rule = &task->rule;
    return (n < 1 << 26 || task->sums_only) && rule->mode >= NO_EPS && rule->mode <= SQUARE_FLOOR && rule->zero >= ZERO
        && rule->zero <= NOT_A_NUMBER && rule->freedom > 0.0;
}

/* Run a task that is complete; returns what `normalize` does. */
static PyObject *run(struct task *task, const struct routines *routines, Py_ssize_t groups, Py_ssize_t n)
{
    PyObject *result = NULL;
    task->missed_most = groups * n / 64 + 64;
    task->memory = aligned_alloc(VECTOR, (routines->size + VECTOR - 1) / VECTOR * VECTOR);
    task->left = malloc((size_t)groups * sizeof *task->left);
    task->missed = malloc((size_t)task->missed_most * sizeof *task->missed);
    if (task->memory && task->left && task->missed) {
        Py_BEGIN_ALLOW_THREADS
        routines->normalize(task);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("y#y#", task->left, task->left_count * (Py_ssize_t)sizeof *task->left,
                               task->missed, task->missed_count * (Py_ssize_t)sizeof *task->missed);
    } else {
        PyErr_NoMemory();
    }
    free(task->memory), free(task->left), free(task->missed);
    return result;
}

PyDoc_STRVAR(normalize_doc,
"normalize(variant, in, out, given, results, gamma, beta, rule, counts, selected) -> (bytes, bytes)\n\n"
"Normalize groups, by what is given of them or by what is measured; return the numbers (int64) of those that are\n"
"left, of which nothing is written that holds, and values of others that have to be calculated in pairs: for each\n"
"seven doubles, its number in all groups, itself, and its group's mean and divisor.");

static PyObject *normalize(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *in, *out, *given, *results, *gamma, *beta, *counts, *selected, *result = NULL;
    int variant;
    struct call call = {.count = 0};
    struct task *task = &call.task;
    struct rule *rule = &task->rule;
    if (!PyArg_ParseTuple(args, "iOOOOOO(ddiippp)OO", &variant, &in, &out, &given, &results, &gamma, &beta,
                          &rule->freedom, &rule->eps, &rule->mode, &rule->zero, &rule->centred, &rule->exact,
                          &rule->exact_results, &counts, &selected))
        return NULL;
    const bool runs = variant >= 0 && variant < VARIANT_COUNT && VARIANTS[variant]->runs();
    if (!require(runs, "no such variant runs here") || !take_view(&call, in, false, &task->in)) goto end;
    call.groups = task->in.shape[0] * task->in.shape[1], call.n = task->in.parts * task->in.shape[2];
    if (!take_doubles(&call, given, 5, task->given) || !take_doubles(&call, counts, 2, task->counts)) goto end;
    if (given == Py_None && !take_results(&call, results)) goto end;
    if (selected != Py_None) {
        const Py_buffer *b = take_flat(&call, selected, "?", call.groups * call.n, false);
        if (!b) goto end;
        task->selected = b->buf;
    }
    if (out != Py_None) {
        if (!take_view(&call, out, true, &task->out)) goto end;
        const bool fits = !memcmp(task->in.shape, task->out.shape, sizeof task->in.shape) && task->in.parts == task->out.parts;
        if (!require(fits, "the results are not of the shape of the values")) goto end;
    }
    if (!take_parameter(&call, gamma, &task->parameters[0]) || !take_parameter(&call, beta, &task->parameters[1])) goto end;
    if (require(is_known(task, call.n), "a rule that is not known")) result = run(task, VARIANTS[variant], call.groups, call.n);
end:
    while (call.count > 0) PyBuffer_Release(&call.held[--call.count]);
    return result;
}

static PyMethodDef methods[] = {{"normalize", normalize, METH_VARARGS, normalize_doc}, {NULL, NULL, 0, NULL}};

/* What Python reads: the stamp of the sources, and the names of the variants that run here (None for others). */
static int execute(PyObject *module)
{
    PyObject *names = PyTuple_New(VARIANT_COUNT);
    bool done = names;
    for (int i = 0; done && i < VARIANT_COUNT; i++) {
        PyObject *name = VARIANTS[i]->runs() ? PyUnicode_FromString(VARIANTS[i]->name) : Py_NewRef(Py_None);
        done = name && PyTuple_SetItem(names, i, name) == 0;
    }
    done = done && PyModule_AddObjectRef(module, "VARIANTS", names) == 0;
    done = done && PyModule_AddStringConstant(module, "STAMP", STAMP) == 0;
    Py_XDECREF(names);
    return done ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_normcli_kernel", "The compiled kernel of normcli.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__normcli_kernel(void) { return PyModuleDef_Init(&definition); }
