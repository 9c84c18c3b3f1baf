/* dms_geometry.c - checks a geometry before anything is planned */
#include "dms_checked.h"
#include "dms_internal.h"
#include "dms_overlap.h"

bool dms_byte_range(uint32_t rank, const uint64_t *sizes, const int64_t *strides, uint64_t element_size, int64_t *begin, int64_t *end,
                    uint32_t *dimension)
{
    uint64_t below = 0, above = element_size;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t span = 0;
        const bool fits = sizes[d] <= 1 || dms_mul_i64(strides[d], sizes[d] - 1, &span);
        if (!fits || below + above + dms_abs_i64(span) > (uint64_t)PTRDIFF_MAX) {   /* pointers reach no further */
            *dimension = d;
            return false;
        }
        *(span < 0 ? &below : &above) += dms_abs_i64(span);
    }
    *begin = -(int64_t)below;
    *end = (int64_t)above;
    return true;
}

/* Computes the product of sizes. Returns false unless every size is above 0 and the size in bytes fits an int64_t. */
static bool count_elements(const dmlsplit_geometry *g, uint64_t *elements, uint32_t *dimension)
{
    uint64_t bytes = g->element_size;
    *elements = 0;
    for (uint32_t d = 0; d < g->rank; d++)
        if (g->sizes[d] == 0)
            return true;
    for (uint32_t d = 0; d < g->rank; d++)
        if (!dms_mul_u64(bytes, g->sizes[d], &bytes) || bytes > (uint64_t)INT64_MAX) {
            *dimension = d;
            return false;
        }
    *elements = bytes / g->element_size;
    return true;
}

static bool lengths_fill_axis(const dmlsplit_geometry *g)
{
    uint64_t left = g->sizes[g->axis];
    for (uint64_t i = 0; i < g->part_count; i++) {
        if (g->lengths[i] > left)
            return false;
        left -= g->lengths[i];
    }
    return left == 0;
}

dmlsplit_status dms_check_geometry(const dmlsplit_geometry *g, uint64_t *elements, dmlsplit_fault *fault)
{
    if (g->direction != DMLSPLIT_SPLIT && g->direction != DMLSPLIT_JOIN)
        return DMLSPLIT_BAD_DIRECTION;
    if ((g->flags & ~(uint32_t)DMLSPLIT_OVERLAP_ALLOWED) != 0)
        return DMLSPLIT_BAD_FLAGS;
    if (g->element_size == 0)
        return DMLSPLIT_BAD_ELEMENT_SIZE;
    if (g->rank == 0 || g->rank > DMLSPLIT_MAX_RANK)
        return DMLSPLIT_BAD_RANK;
    if (g->axis >= g->rank)
        return DMLSPLIT_BAD_AXIS;
    if (g->part_count == 0)
        return DMLSPLIT_NO_PARTS;
    if (g->sizes == NULL || g->lengths == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (g->part_count > (uint64_t)PTRDIFF_MAX / sizeof(int64_t) / g->rank)
        return DMLSPLIT_OUT_OF_MEMORY;  /* no array can hold that many strides */
    if (!lengths_fill_axis(g)) {
        fault->dimension = g->axis;
        return DMLSPLIT_LENGTH_SUM;
    }
    if (!count_elements(g, elements, &fault->dimension))
        return DMLSPLIT_OVERFLOW;
    return DMLSPLIT_OK;
}

/* Elements at index vectors u and v share a byte sum (u_i - v_i) * stride_i| < element_size|if |sum (u_i - v_i) *
 * stride_i| < element_size|sum (u_i - v_i) * stride_i| < element_size. So the question is whether there is a
 * difference vector d other than 0, with |d_i| < size_i, for which that holds. The problem is NP-hard in general
 * (bounded subset sum); real layouts are nested, and are decided without a search. */
dmlsplit_status dms_check_overlap(uint32_t rank, const uint64_t *sizes, const int64_t *strides, uint64_t element_size, uint32_t *budget)
{
    dms_dimension dims[DMLSPLIT_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = rank; d-- > 0;)   /* strides usually descend, so that nothing moves */
        if (sizes[d] > 1)
            dms_add_dimension(dims, &count, dms_abs_i64(strides[d]), sizes[d] - 1);
    if (count > 0 && dims[0].stride < element_size)
        return DMLSPLIT_OUTPUT_OVERLAP; /* adjacent elements overlap, for example with stride 0 */

    uint64_t bytes = element_size, range = element_size;
    for (uint32_t i = 0; i < count; i++) {
        range += dims[i].last * dims[i].stride;
        if (!dms_mul_u64(bytes, dims[i].last + 1, &bytes) || bytes > range)
            return DMLSPLIT_OUTPUT_OVERLAP; /* the elements have more bytes than the range */
    }
    DMS_COUNT_STEPS(count);
    int32_t left = (int32_t)*budget;
    const bool overlap = dms_dimensions_overlap(dims, count, element_size, &left);
    *budget = left > 0 ? (uint32_t)left : 0;
    return overlap ? DMLSPLIT_OUTPUT_OVERLAP : left < 0 ? DMLSPLIT_OVERLAP_UNDECIDED : DMLSPLIT_OK;
}
