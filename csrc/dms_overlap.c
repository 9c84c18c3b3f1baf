/* dms_overlap.c - whether two elements of one tensor share a byte
 *
 * Elements at index vectors u and v share a byte where |sum (u_i - v_i) * stride_i| < element_size. So the question is whether there is a
 * difference vector d other than 0, with |d_i| < size_i, for which that holds. The problem is NP-hard in general (bounded subset sum); real layouts
 * are nested, and are decided without a search.
 */
#include "dms_checked.h"
#include "dms_internal.h"
#include "dms_verdict.h"

dms_overlap dms_self_overlap(uint32_t rank, const uint64_t *sizes, const int64_t *strides, uint64_t element_size, uint32_t *budget)
{
    dms_dimension dims[DMLSPLIT_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = rank; d-- > 0;)   /* strides usually descend, and nothing has to be moved */
        if (sizes[d] > 1)
            dms_add_dimension(dims, &count, dms_abs_i64(strides[d]), sizes[d] - 1);
    if (count > 0 && dims[0].stride < element_size)
        return DMS_OVERLAPS;            /* neighbours do, zero strides among them */

    uint64_t bytes = element_size, range = element_size;
    for (uint32_t i = 0; i < count; i++) {
        range += dims[i].steps * dims[i].stride;
        if (!dms_mul_u64(bytes, dims[i].steps + 1, &bytes) || bytes > range)
            return DMS_OVERLAPS;        /* more bytes of elements than the range holds */
    }
    DMS_COUNT_STEPS(count);
    int32_t left = (int32_t)*budget;
    const bool meet = dms_dimensions_meet(dims, count, element_size, &left);
    *budget = left > 0 ? (uint32_t)left : 0;
    return meet ? DMS_OVERLAPS : left < 0 ? DMS_UNDECIDED : DMS_DISJOINT;
}
