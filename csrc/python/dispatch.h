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

enum { DMS_FEW_ARRAYS = 33 };           /* up to so many need no memory from the heap: 2.6 KB */

/* Whether the object is an ndarray (no subclass), of the dtype and the layout with this number; then *view holds its buffer. */
static int dms_take(PyObject *object, const dms_array_spec *spec, uint32_t layout, int writable, Py_buffer *view)
{
    const dms_array_layout *expected = &spec->layouts[layout];
    PyObject *part = PyObject_Type(object);
    Py_DECREF(part);
    if ((uintptr_t)part != spec->array_type)
        return 0;
    part = PyObject_GetAttr(object, (PyObject *)spec->dtype_name);
    if (part == NULL)
        return 0;
    Py_DECREF(part);                    /* the array holds another reference */
    if ((uintptr_t)part != spec->dtype || PyObject_GetBuffer(object, view, writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO) != 0)
        return 0;
    int same = (uint32_t)view->ndim == spec->rank;
    for (uint32_t d = 0; same && d < spec->rank; d++)
        same = view->shape[d] == expected->sizes[d] && (view->strides[d] == expected->strides[d] || expected->sizes[d] == 1);
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

/* views and pointers hold as many as there are tensors; parts is a tuple of our own, as taking one may run code that shortens a list. */
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

/* 1: copied; 0: nothing was, and no exception is set. */
int dms_dispatch_arrays(const dmlsplit_plan *plan, const dms_array_spec *spec, uintptr_t whole, uintptr_t parts, uint32_t threads)
{
    const size_t count = (size_t)spec->part_count + 1;
    const int are_few = count <= DMS_FEW_ARRAYS;
    Py_buffer few_views[DMS_FEW_ARRAYS];
    void *few_pointers[DMS_FEW_ARRAYS];
    int done = 0;
    /* cffi releases the GIL around every call. */
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *const given = (PyObject *)parts;
    PyObject *const tuple = PyList_Check(given) || PyTuple_Check(given) ? PySequence_Tuple(given) : NULL;
    Py_buffer *const views = are_few ? few_views : PyMem_Calloc(count, sizeof *views);
    void **const pointers = are_few ? few_pointers : PyMem_Calloc(count, sizeof *pointers);
    if (tuple != NULL && views != NULL && pointers != NULL)
        done = dms_dispatch_views(plan, spec, (PyObject *)whole, tuple, threads, views, pointers);
    if (!are_few) {
        PyMem_Free(pointers);
        PyMem_Free(views);
    }
    Py_XDECREF(tuple);
    PyErr_Clear();
    PyGILState_Release(gil);
    return done;
}
