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
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof VARIANTS[0], MOST_BUFFERS = 15 };

/* The buffers of one call, released together. */
struct buffers {
    Py_buffer held[MOST_BUFFERS];
    int count;
};

static void release(struct buffers *buffers)
{
    while (buffers->count > 0) PyBuffer_Release(&buffers->held[--buffers->count]);
}

/* Take a buffer of a rank and of one of some formats, aligned; NULL with an exception otherwise. */
static Py_buffer *take(struct buffers *buffers, PyObject *object, const char *formats, int rank, bool writable)
{
    Py_buffer *b = &buffers->held[buffers->count];
    if (PyObject_GetBuffer(object, b, PyBUF_FORMAT | PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0)) < 0) return NULL;
    buffers->count++;
    const char *format = b->format ? b->format : "B";
    bool fits = b->ndim == rank && format[0] && !format[1] && strchr(formats, format[0]) && b->itemsize > 0;
    fits = fits && (uintptr_t)b->buf % (size_t)b->itemsize == 0;
    for (int i = 0; fits && i < rank; i++) fits = b->strides[i] % b->itemsize == 0;
    if (fits) return b;
    PyErr_Format(PyExc_ValueError, "a buffer of %d axes of '%s' is '%s' of %d", rank, formats, format, b->ndim);
    return NULL;
}

/* The same without gaps. */
static Py_buffer *take_flat(struct buffers *buffers, PyObject *object, const char *formats, Py_ssize_t bytes, bool writable)
{
    Py_buffer *b = take(buffers, object, formats, 1, writable);
    if (!b) return NULL;
    if ((b->shape[0] < 2 || b->strides[0] == b->itemsize) && (bytes < 0 || b->len == bytes)) return b;
    PyErr_SetString(PyExc_ValueError, "a buffer has gaps, or not as many numbers as groups");
    return NULL;
}

static bool take_view(struct buffers *buffers, PyObject *object, bool writable, struct view *view)
{
    const Py_buffer *b = take(buffers, object, "dfeH", 4, writable);
    if (!b) return false;
    const char format = b->format[0];
    const enum kind kind = format == 'd' ? F64 : format == 'f' ? F32 : format == 'e' ? F16 : BF16;
    if (b->itemsize != SIZES[kind] || b->len == 0) {
        PyErr_SetString(PyExc_ValueError, "a view is empty, or its numbers are not as long as they should be");
        return false;
    }
    view->data = b->buf, view->kind = kind;
    for (int i = 0; i < 2; i++) view->shape[i] = b->shape[i], view->strides[i] = b->strides[i];
    view->shape[2] = b->shape[3], view->strides[2] = b->strides[3];
    view->parts = b->shape[2], view->part_stride = b->strides[2];
    return true;
}

/* (values, starts, span) or None. */
static bool take_parameter(struct buffers *buffers, PyObject *object, Py_ssize_t groups, Py_ssize_t n, struct parameter *p)
{
    PyObject *values, *starts;
    Py_ssize_t span;
    p->values = NULL;
    if (object == Py_None) return true;
    if (!PyArg_ParseTuple(object, "OOn", &values, &starts, &span)) return false;
    const Py_buffer *v = take_flat(buffers, values, "d", -1, false);
    const Py_buffer *s = v ? take_flat(buffers, starts, "lq", groups * 8, false) : NULL;
    if (!s) return false;
    p->values = v->buf, p->starts = s->buf, p->span = span;
    const int64_t most = span > 0 ? v->shape[0] - ((n - 1) / span + 1) : -1;
    bool inside = s->itemsize == 8;
    for (Py_ssize_t g = 0; inside && g < groups; g++) inside = p->starts[g] >= 0 && p->starts[g] <= most;
    if (!inside) PyErr_SetString(PyExc_ValueError, "a parameter has fewer values than its groups need");
    return inside;
}

static const struct routines *find_variant(int number)
{
    if (number >= 0 && number < VARIANT_COUNT && VARIANTS[number]->runs()) return VARIANTS[number];
    PyErr_SetString(PyExc_ValueError, "no such variant runs here");
    return NULL;
}

/* Where each statistic is to be written, or each double of the sums if there are seven; None for nowhere. */
static bool take_results(struct buffers *buffers, PyObject *tuple, Py_ssize_t groups, struct task *task)
{
    const Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    task->sums_only = count == 7;
    if (count != 4 && count != 7) {
        PyErr_SetString(PyExc_ValueError, "neither four statistics nor seven doubles of sums");
        return false;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *object = PyTuple_GetItem(tuple, k);
        if (object == Py_None) continue;
        const Py_buffer *b = take_flat(buffers, object, "d", groups * 8, true);
        if (!b) return false;
        task->results[k] = b->buf;
    }
    return true;
}

PyDoc_STRVAR(normalize_doc, "normalize(variant, in, out, given, results, gamma, beta, rule, counts, selected) -> (bytes, bytes)\n\n"
"Normalize groups, by what is given of them or by what is measured; return the numbers (int64) of those that are\n"
"left, of which nothing is written that holds, and values of others that have to be calculated in pairs: for each\n"
"seven doubles, its number in all groups, itself, and its group's mean and divisor.");

static PyObject *normalize(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *in, *out, *given, *results, *gamma, *beta, *counts, *selected, *result = NULL;
    int variant, mode, zero, centred, exact, exact_results;
    struct task task;
    struct buffers buffers = {.count = 0};
    memset(&task, 0, sizeof task);
    struct rule *rule = &task.rule;
    if (!PyArg_ParseTuple(args, "iOOOOOO(ddiippp)OO", &variant, &in, &out, &given, &results, &gamma, &beta, &rule->freedom, &rule->eps,
                          &mode, &zero, &centred, &exact, &exact_results, &counts, &selected))
        return NULL;
    const struct routines *routines = find_variant(variant);
    if (!routines || !take_view(&buffers, in, false, &task.in)) goto end;
    const Py_ssize_t groups = task.in.shape[0] * task.in.shape[1], n = task.in.parts * task.in.shape[2];
    if (given != Py_None) {
        const Py_buffer *b = take_flat(&buffers, given, "d", 5 * groups * 8, false);
        for (int k = 0; b && k < 5; k++) task.given[k] = (const double *)b->buf + k * groups;
        if (!b) goto end;
    } else if (!take_results(&buffers, results, groups, &task)) {
        goto end;
    }
    if (counts != Py_None) {
        const Py_buffer *b = take_flat(&buffers, counts, "d", 2 * groups * 8, false);
        for (int k = 0; b && k < 2; k++) task.counts[k] = (const double *)b->buf + k * groups;
        if (!b) goto end;
    }
    if (selected != Py_None) {
        const Py_buffer *b = take_flat(&buffers, selected, "?", groups * n, false);
        if (!b) goto end;
        task.selected = b->buf;
    }
    if (out != Py_None) {
        if (!take_view(&buffers, out, true, &task.out)) goto end;
        if (memcmp(task.in.shape, task.out.shape, sizeof task.in.shape) || task.in.parts != task.out.parts) {
            PyErr_SetString(PyExc_ValueError, "the results are not of the shape of the values");
            goto end;
        }
    }
    if (!take_parameter(&buffers, gamma, groups, n, &task.gamma) || !take_parameter(&buffers, beta, groups, n, &task.beta)) goto end;
    if ((n >= 1 << 26 && !task.sums_only) || mode < NO_EPS || mode > SQUARE_FLOOR || zero < ZERO || zero > NOT_A_NUMBER || !(rule->freedom > 0.0)) {
        PyErr_SetString(PyExc_ValueError, "a rule that is not known");
        goto end;
    }
    rule->mode = mode, rule->zero = zero;
    rule->centred = centred, rule->exact = exact, rule->exact_results = exact_results;
    task.batch = malloc(sizeof *task.batch);
    task.memory = malloc(count_memory());
    task.left = malloc((size_t)groups * sizeof *task.left);
    task.missed_most = groups * n / 64 + 64;
    task.missed = malloc((size_t)task.missed_most * sizeof *task.missed);
    if (task.batch && task.memory && task.left && task.missed) {
        Py_BEGIN_ALLOW_THREADS
        routines->normalize(&task);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("y#y#", task.left, task.left_count * (Py_ssize_t)sizeof *task.left,
                               task.missed, task.missed_count * (Py_ssize_t)sizeof *task.missed);
    } else {
        PyErr_NoMemory();
    }
end:
    free(task.batch), free(task.memory), free(task.left), free(task.missed);
    release(&buffers);
    return result;
}

static PyMethodDef methods[] = {
    {"normalize", normalize, METH_VARARGS, normalize_doc},
    {NULL, NULL, 0, NULL},
};

/* What Python reads: the stamp of the sources, and the names of the variants that run here (None for others). */
static int execute(PyObject *module)
{
    PyObject *names = PyTuple_New(VARIANT_COUNT);
    if (!names) return -1;
    for (int i = 0; i < VARIANT_COUNT; i++) {
        PyObject *name = VARIANTS[i]->runs() ? PyUnicode_FromString(VARIANTS[i]->name) : Py_NewRef(Py_None);
        if (!name || PyTuple_SetItem(names, i, name) < 0) {
            Py_DECREF(names);
            return -1;
        }
    }
    const int failed = PyModule_AddObjectRef(module, "VARIANTS", names);
    Py_DECREF(names);
    return failed < 0 ? -1 : PyModule_AddStringConstant(module, "STAMP", STAMP);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_normcli_kernel", "The compiled kernel of normcli.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__normcli_kernel(void) { return PyModuleDef_Init(&definition); }
