/* dms_execute.c - runs a plan, and checks its buffers */
#include "dms_kernel.h"
#include "dms_memory.h"

#include <stdlib.h>

/* Returns DMLSPLIT_NULL_POINTER if a pointer that a run of parts [first, last) needs is NULL, else DMLSPLIT_OK. */
static dmlsplit_status check_pointers(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    if (plan->bytes == 0)
        return DMLSPLIT_OK;
    if (buffers->whole == NULL || buffers->parts == NULL)
        return DMLSPLIT_NULL_POINTER;
    for (uint64_t i = first; i < last; i++)
        if (plan->parts[i].shape != NULL && dms_part_base(buffers, i) == NULL)
            return DMLSPLIT_NULL_POINTER;
    return DMLSPLIT_OK;
}

dmlsplit_status dms_check_pointers(const dmlsplit_plan *plan, const dms_buffers *buffers)
{
    return plan != NULL ? check_pointers(plan, buffers, 0, plan->part_count) : DMLSPLIT_NULL_POINTER;
}

static dmlsplit_status run(const dmlsplit_plan *plan, dmlsplit_direction direction, const dms_buffers *buffers, uint32_t threads)
{
    if (plan == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (plan->direction != (uint32_t)direction)
        return DMLSPLIT_WRONG_DIRECTION;
    const dmlsplit_status status = check_pointers(plan, buffers, 0, plan->part_count);
    if (status != DMLSPLIT_OK || plan->bytes == 0)
        return status;
    if (threads > 1)
        dms_run_on_threads(plan, buffers, threads);
    else
        dms_run_all(plan, buffers);
    return DMLSPLIT_OK;
}

dmlsplit_status dmlsplit_split(const dmlsplit_plan *plan, const void *whole, void *const *parts)
{
    return dmlsplit_split_threads(plan, whole, parts, 1);
}

dmlsplit_status dmlsplit_join(const dmlsplit_plan *plan, const void *const *parts, void *whole)
{
    return dmlsplit_join_threads(plan, parts, whole, 1);
}

dmlsplit_status dmlsplit_split_threads(const dmlsplit_plan *plan, const void *whole, void *const *parts, uint32_t threads)
{
    const dms_buffers buffers = {(void *)whole, parts};
    return run(plan, DMLSPLIT_SPLIT, &buffers, threads);
}

dmlsplit_status dmlsplit_join_threads(const dmlsplit_plan *plan, const void *const *parts, void *whole, uint32_t threads)
{
    const dms_buffers buffers = {whole, parts};
    return run(plan, DMLSPLIT_JOIN, &buffers, threads);
}

/* ---- Slices ---- */

static dmlsplit_status run_slice(const dmlsplit_plan *plan, dmlsplit_direction direction, const dms_buffers *buffers, uint32_t index, uint32_t count)
{
    if (plan == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (plan->direction != (uint32_t)direction)
        return DMLSPLIT_WRONG_DIRECTION;
    if (index >= count)
        return DMLSPLIT_BAD_SLICE;
    if (plan->bytes == 0)
        return DMLSPLIT_OK;
    const dms_slices cut = dms_choose_slices(plan, count);
    const dms_slice slice = dms_find_slice(plan, &cut, index);
    const dmlsplit_status status = check_pointers(plan, buffers, slice.first_part, slice.last_part);
    if (status == DMLSPLIT_OK)
        dms_run_slice(plan, buffers, &cut, &slice);
    return status;
}

dmlsplit_status dmlsplit_split_slice(const dmlsplit_plan *plan, const void *whole, void *const *parts, uint32_t index, uint32_t count)
{
    const dms_buffers buffers = {(void *)whole, parts};
    return run_slice(plan, DMLSPLIT_SPLIT, &buffers, index, count);
}

dmlsplit_status dmlsplit_join_slice(const dmlsplit_plan *plan, const void *const *parts, void *whole, uint32_t index, uint32_t count)
{
    const dms_buffers buffers = {whole, parts};
    return run_slice(plan, DMLSPLIT_JOIN, &buffers, index, count);
}

/* ---- Ranges ---- */

enum { FEW_PARTS = 16 };                /* sorted on the stack */

/* The byte range of a part or of the whole. Addresses are numbers, because C does not order pointers into different
 * objects. */
typedef struct interval {
    uintptr_t begin, end;
    uint64_t part;                      /* or DMLSPLIT_WHOLE */
} interval;

static interval part_interval(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t part)
{
    const dms_shape *shape = plan->parts[part].shape;
    const uintptr_t base = (uintptr_t)dms_part_base(buffers, part);
    return (interval){base + (uintptr_t)shape->begin, base + (uintptr_t)shape->end, part};
}

static bool intersect(interval a, interval b)
{
    return a.begin < b.end && b.begin < a.end;
}

static int compare_begins(const void *a, const void *b)
{
    const uintptr_t x = ((const interval *)a)->begin, y = ((const interval *)b)->begin;
    return (x > y) - (x < y);
}

static dmlsplit_status check_sorted(const dmlsplit_plan *plan, const dms_buffers *buffers, dmlsplit_fault *fault)
{
    interval few[FEW_PARTS], *intervals = few;
    if (plan->part_count > FEW_PARTS)
        intervals = dms_allocate(plan->part_count, sizeof *intervals);   /* 1.5 times the size of plan->parts */
    if (intervals == NULL)
        return DMLSPLIT_OUT_OF_MEMORY;
    size_t count = 0;
    for (uint64_t i = 0; i < plan->part_count; i++)
        if (plan->parts[i].shape != NULL)
            intervals[count++] = part_interval(plan, buffers, i);
    qsort(intervals, count, sizeof *intervals, compare_begins);
    dmlsplit_status status = DMLSPLIT_OK;
    for (size_t i = 1; i < count && status == DMLSPLIT_OK; i++)
        if (intersect(intervals[i - 1], intervals[i])) {
            status = DMLSPLIT_RANGES_INTERSECT;    /* reports the later part: those before it may be right */
            fault->part = intervals[i].part > intervals[i - 1].part ? intervals[i].part : intervals[i - 1].part;
        }
    if (intervals != few)
        free(intervals);
    return status;
}

dmlsplit_status dmlsplit_plan_check_ranges(const dmlsplit_plan *plan, const void *whole, const void *parts, dmlsplit_fault *fault)
{
    const dms_buffers buffers = {(void *)whole, parts};
    dmlsplit_fault unwanted;
    fault = fault != NULL ? fault : &unwanted;
    *fault = (dmlsplit_fault){DMLSPLIT_WHOLE, DMLSPLIT_NO_DIMENSION};
    if (plan == NULL)
        return DMLSPLIT_NULL_POINTER;
    const dmlsplit_status status = check_pointers(plan, &buffers, 0, plan->part_count);
    if (status != DMLSPLIT_OK || plan->bytes == 0)
        return status;
    const interval of_whole = {(uintptr_t)whole + (uintptr_t)plan->begin, (uintptr_t)whole + (uintptr_t)plan->end, DMLSPLIT_WHOLE};
    bool ascend = true;                 /* parts at ascending addresses, as usual, need no sorting */
    uintptr_t end = 0;
    for (uint64_t i = 0; i < plan->part_count; i++) {
        if (plan->parts[i].shape == NULL)
            continue;
        const interval part = part_interval(plan, &buffers, i);
        if (intersect(part, of_whole)) {
            fault->part = i;
            return DMLSPLIT_RANGES_INTERSECT;
        }
        ascend = ascend && part.begin >= end;
        end = part.end;
    }
    return plan->direction == DMLSPLIT_JOIN || ascend ? DMLSPLIT_OK : check_sorted(plan, &buffers, fault);
}
