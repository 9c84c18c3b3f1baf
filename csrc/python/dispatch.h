/* dispatch.h - one call for a dispatch on arrays: part of the Python extension only, which includes it
 *
 * Binding arrays from Python costs a microsecond a tensor. Here the arrays' buffers are taken by the buffer protocol, held against what the
 * operator expects, used and released within one call. Whatever is not plainly right is left to Python, which says what is wrong or
 * knows what to do: nothing has been copied then.
 *
 * cffi cannot pass objects, so they come as their id(), which CPython documents to be the address. The caller holds references
 * to all of them for the length of the call.
 */
#include "dispatch.cdef"

enum { DMS_MOST_ARRAYS = 33 };          /* one whole and 32 parts; with more, the copy outweighs the binding */

/* Whether the object is an ndarray (no subclass), of the dtype, sizes and strides of the tensor; then *view holds its buffer. */
static int dms_take(PyObject *object, const dms_array_spec *spec, const dms_array_tensor *tensor, int writable, Py_buffer *view)
{
    PyObject *part = PyObject_Type(object);
    Py_DECREF(part);
    if ((uintptr_t)part != spec->array_type)
        return 0;
    part = PyObject_GetAttrString(object, "dtype");
    if (part == NULL)
        return 0;
    Py_DECREF(part);                    /* the array holds another reference */
    if ((uintptr_t)part != spec->dtype || PyObject_GetBuffer(object, view, writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO) != 0)
        return 0;
    int same = (uint32_t)view->ndim == spec->rank;
    for (uint32_t d = 0; same && d < spec->rank; d++)
        same = view->shape[d] == tensor->sizes[d] && (view->strides[d] == tensor->strides[d] || tensor->sizes[d] == 1);
    if (!same)
        PyBuffer_Release(view);
    return same;
}

static int dms_copy(const dmlsplit_plan *plan, void *whole, void **parts, int split, uint32_t threads)
{
    if (dmlsplit_plan_check_ranges(plan, whole, (const void *const *)parts, NULL) != DMLSPLIT_OK)
        return 0;
    PyThreadState *state = dmlsplit_plan_bytes(plan) > 65536 ? PyEval_SaveThread() : NULL;
    const dmlsplit_status status = split ? dmlsplit_split_threads(plan, whole, parts, threads)
                                         : dmlsplit_join_threads(plan, (const void *const *)parts, whole, threads);
    if (state != NULL)
        PyEval_RestoreThread(state);
    return status == DMLSPLIT_OK;
}

/* Borrowed; NULL for an index out of range, and for what is neither a list nor a tuple. */
static PyObject *dms_item(PyObject *sequence, uint32_t index)
{
    if (PyList_Check(sequence))
        return PyList_GetItem(sequence, (Py_ssize_t)index);
    return PyTuple_Check(sequence) ? PyTuple_GetItem(sequence, (Py_ssize_t)index) : NULL;
}

/* 1: copied; 0: nothing was, and no exception is set. */
int dms_dispatch_arrays(const dmlsplit_plan *plan, const dms_array_spec *spec, uintptr_t whole, uintptr_t parts, uint32_t threads)
{
    Py_buffer views[DMS_MOST_ARRAYS];
    void *pointers[DMS_MOST_ARRAYS];
    uint32_t taken = 0;
    int done = 0;
    /* cffi releases the GIL around every call. */
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *sequence = (PyObject *)parts;
    if (dms_item(sequence, spec->part_count) == NULL && dms_take((PyObject *)whole, spec, spec->tensors, !spec->split, views)) {
        for (taken = 1; taken <= spec->part_count; taken++) {
            PyObject *part = dms_item(sequence, taken - 1);
            if (part == NULL || !dms_take(part, spec, &spec->tensors[taken], spec->split, &views[taken]))
                break;
            pointers[taken - 1] = views[taken].buf;
        }
        if (taken > spec->part_count)
            done = dms_copy(plan, views[0].buf, pointers, spec->split, threads);
    }
    PyErr_Clear();
    while (taken > 0)
        PyBuffer_Release(&views[--taken]);
    PyGILState_Release(gil);
    return done;
}
