/* dispatch.h - one call for a dispatch on arrays: part of the Python extension only, which includes it
 *
 * Binding arrays from Python costs a microsecond a tensor. Here the arrays are held against what the operator expects, used and released within
 * one call. Whatever is not plainly right is left to Python, which says what is wrong or knows what to do: nothing has been copied then.
 *
 * It is a built-in function for each plan: what cffi calls, it calls without the GIL, and a function that takes it again costs 0.3 us more.
 */
#include "dispatch.cdef"

enum { DMS_FEW_ARRAYS = 33 };           /* arrays that need no heap: 2.6 KB of stack */

/* The first members of an ndarray, as PyArrayObject_fields of numpy/ndarraytypes.h has them: part of numpy's ABI, by which its macros were compiled into
 * other modules from version 1.0 on. Python asks for an array that it knows first (dms_describe_array), and sets spec->is_known only where all agree. */
typedef struct dms_ndarray {
    PyObject_HEAD
    char *data;
    int rank;
    Py_ssize_t *sizes, *strides;
    PyObject *base, *dtype;
    int flags;
} dms_ndarray;

enum { DMS_WRITEABLE = 0x400 };         /* NPY_ARRAY_WRITEABLE; NPY_ARRAY_WARN_ON_WRITE is the sign of flags */

/* The members that are read from an array of at most two dimensions. */
dms_array_fields dms_describe_array(uintptr_t array)
{
    const dms_ndarray *a = (const dms_ndarray *)array;
    dms_array_fields f = {(uintptr_t)a->data, (uintptr_t)a->dtype, a->rank, a->flags, {0, 0}, {0, 0}};
    for (int d = 0; d < a->rank && d < 2; d++) {
        f.sizes[d] = a->sizes[d];
        f.strides[d] = a->strides[d];
    }
    return f;
}

static int dms_is_laid_out(const dms_array_layout *expected, uint32_t rank, const Py_ssize_t *sizes, const Py_ssize_t *strides)
{
    for (uint32_t d = 0; d < rank; d++)
        if (sizes[d] != expected->sizes[d] || (strides[d] != expected->strides[d] && expected->sizes[d] != 1))
            return 0;
    return 1;
}

/* Reading members of an array takes a twentieth of the time of exporting its buffer. */
static int dms_take_known(const dms_ndarray *array, const dms_array_spec *spec, const dms_array_layout *expected, int writable, Py_buffer *view)
{
    const int may_be_written = (array->flags & DMS_WRITEABLE) != 0 && array->flags >= 0;
    view->buf = array->data;
    view->obj = NULL;                   /* nothing to release */
    return (uintptr_t)array->dtype == spec->dtype && (uint32_t)array->rank == spec->rank && (may_be_written || !writable) &&
           dms_is_laid_out(expected, spec->rank, array->sizes, array->strides);
}

/* True if the object is an ndarray (not of a subclass) with the dtype and the layout of this number; view->buf is
 * then its memory, until the view is released. */
static int dms_take(PyObject *object, const dms_array_spec *spec, uint32_t layout, int writable, Py_buffer *view)
{
    const dms_array_layout *expected = &spec->layouts[layout];
    if ((uintptr_t)Py_TYPE(object) != spec->array_type)
        return 0;
    if (spec->is_known)
        return dms_take_known((const dms_ndarray *)(void *)object, spec, expected, writable, view);
    PyObject *part = PyObject_GetAttr(object, (PyObject *)spec->dtype_name);
    if (part == NULL)
        return 0;
    Py_DECREF(part);                    /* the array holds another reference */
    if ((uintptr_t)part != spec->dtype || PyObject_GetBuffer(object, view, writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO) != 0)
        return 0;
    const int same = (uint32_t)view->ndim == spec->rank && dms_is_laid_out(expected, spec->rank, view->shape, view->strides);
    if (!same)
        PyBuffer_Release(view);
    return same;
}

static int dms_copy(const dmlsplit_plan *plan, void *whole, void **parts, int split, uint32_t threads)
{
    if (dmlsplit_plan_check_ranges(plan, whole, parts, NULL) != DMLSPLIT_OK)
        return 0;
    PyThreadState *state = dmlsplit_plan_bytes(plan) > 65536 ? PyEval_SaveThread() : NULL;
    const dmlsplit_status status = split ? dmlsplit_split_threads(plan, whole, parts, threads)
                                         : dmlsplit_join_threads(plan, (const void *const *)parts, whole, threads);
    if (state != NULL)
        PyEval_RestoreThread(state);
    return status == DMLSPLIT_OK;
}

/* views and pointers have an entry for each tensor; parts is a tuple owned by this function, because reading an
 * array may run code that shortens a list. */
static int dms_dispatch_views(const dmlsplit_plan *plan, const dms_array_spec *spec, PyObject *whole, PyObject *parts, uint32_t threads,
                              Py_buffer *views, void **pointers)
{
    size_t taken = 0;
    int done = 0;
    if (PyTuple_Size(parts) == (Py_ssize_t)spec->part_count && dms_take(whole, spec, spec->layout_of[0], !spec->split, &views[0])) {
        for (taken = 1; taken <= spec->part_count; taken++) {
            if (!dms_take(PyTuple_GetItem(parts, (Py_ssize_t)taken - 1), spec, spec->layout_of[taken], spec->split, &views[taken]))
                break;
            pointers[taken - 1] = views[taken].buf;
        }
        if (taken > spec->part_count)
            done = dms_copy(plan, views[0].buf, pointers, spec->split, threads);
    }
    while (taken > 0)
        PyBuffer_Release(&views[--taken]);
    return done;
}

/* Returns true if it copied; sets no exception. */
static int dms_dispatch_arrays(const dms_array_spec *spec, PyObject *whole, PyObject *given, uint32_t threads)
{
    const size_t count = (size_t)spec->part_count + 1;
    const int are_few = count <= DMS_FEW_ARRAYS;
    Py_buffer few_views[DMS_FEW_ARRAYS];
    void *few_pointers[DMS_FEW_ARRAYS];
    int done = 0;
    PyObject *const tuple = PyList_Check(given) || PyTuple_Check(given) ? PySequence_Tuple(given) : NULL;
    Py_buffer *const views = are_few ? few_views : PyMem_Calloc(count, sizeof *views);
    void **const pointers = are_few ? few_pointers : PyMem_Calloc(count, sizeof *pointers);
    if (tuple != NULL && views != NULL && pointers != NULL)
        done = dms_dispatch_views(spec->plan, spec, whole, tuple, threads, views, pointers);
    if (!are_few) {
        PyMem_Free(pointers);
        PyMem_Free(views);
    }
    Py_XDECREF(tuple);
    PyErr_Clear();
    return done;
}

/* The members of a function's self, which is a tuple. After them it holds whatever must live as long as the spec. */
enum { DMS_SELF_SPEC, DMS_SELF_MAKER, DMS_SELF_ARGUMENTS };

/* Returns the spec and sets the number of threads, which is the argument after `needed` others; NULL with an
 * exception set. */
static const dms_array_spec *dms_read_call(PyObject *self, PyObject *const *arguments, Py_ssize_t count, Py_ssize_t needed, uint32_t *threads)
{
    const dms_array_spec *const spec = PyLong_AsVoidPtr(PyTuple_GetItem(self, DMS_SELF_SPEC));
    if (count < needed || count > needed + 1) {
        PyErr_SetString(PyExc_TypeError, "arrays and perhaps a number of threads are expected");
        return NULL;
    }
    *threads = count > needed ? (uint32_t)PyLong_AsUnsignedLong(arguments[needed]) : 1;
    return PyErr_Occurred() == NULL ? spec : NULL;
}

/* run(whole, parts, threads=1) -> bool */
static PyObject *dms_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    uint32_t threads;
    const dms_array_spec *const spec = dms_read_call(self, arguments, count, 2, &threads);
    return spec != NULL ? PyBool_FromLong(dms_dispatch_arrays(spec, arguments[0], arguments[1], threads)) : NULL;
}

/* Returns a list of the maker's results for each tuple of arguments. */
static PyObject *dms_make_outputs(PyObject *self)
{
    PyObject *const maker = PyTuple_GetItem(self, DMS_SELF_MAKER), *const given = PyTuple_GetItem(self, DMS_SELF_ARGUMENTS);
    const Py_ssize_t count = PyTuple_Size(given);
    PyObject *const outputs = PyList_New(count);
    for (Py_ssize_t i = 0; outputs != NULL && i < count; i++) {
        PyObject *const output = PyObject_Call(maker, PyTuple_GetItem(given, i), NULL);
        if (output == NULL) {
            Py_DECREF(outputs);
            return NULL;
        }
        (void)PyList_SetItem(outputs, i, output);
    }
    return outputs;
}

/* fresh(inputs, threads=1) -> the parts of a split, the whole of a join, or None */
static PyObject *dms_run_fresh(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    uint32_t threads;
    const dms_array_spec *const spec = dms_read_call(self, arguments, count, 1, &threads);
    PyObject *const outputs = spec != NULL ? dms_make_outputs(self) : NULL;
    if (outputs == NULL)
        return NULL;
    PyObject *const result = spec->split ? outputs : PyList_GetItem(outputs, 0);
    PyObject *const whole = spec->split ? arguments[0] : result, *const parts = spec->split ? result : arguments[0];
    PyObject *const found = dms_dispatch_arrays(spec, whole, parts, threads) ? result : Py_None;
    Py_INCREF(found);
    Py_DECREF(outputs);
    return found;
}

/* Appends the functions `run` and `fresh` with this self to a list. Both are given by id(), which CPython documents
 * to be the address. Returns 0 if there is no memory. */
int dms_add_dispatch(uintptr_t list, uintptr_t self)
{
    static PyMethodDef methods[] = {{"run", (PyCFunction)(void (*)(void))dms_run, METH_FASTCALL, NULL},
                                    {"fresh", (PyCFunction)(void (*)(void))dms_run_fresh, METH_FASTCALL, NULL}};
    const PyGILState_STATE gil = PyGILState_Ensure();
    int added = 1;
    for (int i = 0; i < 2 && added; i++) {
        PyObject *const function = PyCFunction_NewEx(&methods[i], (PyObject *)self, NULL);
        added = function != NULL && PyList_Append((PyObject *)list, function) == 0;
        Py_XDECREF(function);
    }
    PyErr_Clear();
    PyGILState_Release(gil);
    return added;
}
