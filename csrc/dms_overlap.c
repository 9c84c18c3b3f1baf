/* dms_overlap.c - whether two elements of one tensor share a byte
 *
 * Elements at index vectors u and v share a byte where |sum (u_i - v_i) * stride_i| < element_size. So the question is whether there is a
 * difference vector d other than 0, with |d_i| < size_i, for which that holds. Signs of strides do not matter: d_i has either sign. The
 * problem is NP-hard in general (bounded subset sum); real layouts are nested, and are decided without a search.
 */
#include "dms_internal.h"

#include "dms_checked.h"

/* Dimension i, by ascending stride. */
typedef struct step {
    int64_t stride;                     /* > 0 */
    int64_t most;                       /* size - 1, >= 1 */
    int64_t reach;                      /* sum of most * stride up to and including this one */
    int64_t divisor;                    /* greatest common divisor of the strides up to and including this one */
} step;

typedef struct search {
    step steps[DMLSPLIT_MAX_RANK];
    int64_t element_size;
    uint32_t *budget;
} search;

static int64_t floor_divide(int64_t a, int64_t b)   /* b > 0 */
{
    return a / b - (a % b < 0);
}

/* Whether sum, plus d_i * stride_i for i < count, can come closer to 0 than element_size; not_zero: some d was chosen other than 0 already.
 * While all are 0 only d >= 0 needs a look, since -d gives the same distances. */
static dms_overlap find(search *s, uint32_t count, int64_t sum, bool not_zero)
{
    if (count == 0)
        return not_zero ? DMS_OVERLAPS : DMS_DISJOINT;  /* the intervals below keep |sum| < element_size */
    if (*s->budget == 0)
        return DMS_UNDECIDED;
    --*s->budget;

    const step *last = &s->steps[count - 1];
    const int64_t residue = (sum < 0 ? -sum : sum) % last->divisor;
    if (residue >= s->element_size && last->divisor - residue >= s->element_size)
        return DMS_DISJOINT;            /* the sum moves in multiples of the divisor only */

    /* The distance that the smaller strides can still make up for. */
    const int64_t rest = s->element_size - 1 + (count > 1 ? s->steps[count - 2].reach : 0);
    int64_t low = -floor_divide(rest + sum, last->stride);
    int64_t high = floor_divide(rest - sum, last->stride);
    if (low < -last->most)
        low = -last->most;
    if (high > last->most)
        high = last->most;
    if (!not_zero && low < 0)
        low = 0;

    for (int64_t d = low; d <= high; d++) {
        const dms_overlap found = find(s, count - 1, sum + d * last->stride, not_zero || d != 0);
        if (found != DMS_DISJOINT)
            return found;
    }
    return DMS_DISJOINT;
}

static uint32_t collect_steps(search *s, uint32_t rank, const uint64_t *sizes, const int64_t *strides)
{
    uint32_t count = 0;
    for (uint32_t d = rank; d-- > 0;) { /* strides usually descend, and nothing has to be moved */
        if (sizes[d] == 1)
            continue;
        const int64_t stride = (int64_t)dms_abs_i64(strides[d]);
        uint32_t at = count++;
        for (; at > 0 && s->steps[at - 1].stride > stride; at--) {
            DMS_COUNT_STEPS(1);
            s->steps[at] = s->steps[at - 1];
        }
        s->steps[at].stride = stride;
        s->steps[at].most = (int64_t)(sizes[d] - 1);
    }
    return count;
}

dms_overlap dms_self_overlap(uint32_t rank, const uint64_t *sizes, const int64_t *strides, uint64_t element_size, uint32_t *budget)
{
    search s;
    s.element_size = (int64_t)element_size;
    s.budget = budget;
    const uint32_t count = collect_steps(&s, rank, sizes, strides);
    if (count > 0 && s.steps[0].stride < s.element_size)
        return DMS_OVERLAPS;            /* neighbours do, zero strides among them */

    bool nested = true;
    int64_t reach = 0, divisor = 0;
    uint64_t bytes = element_size;
    for (uint32_t i = 0; i < count; i++) {
        step *at = &s.steps[i];
        nested = nested && at->stride - reach >= s.element_size;
        reach += at->most * at->stride;
        divisor = (int64_t)dms_common_divisor((uint64_t)at->stride, (uint64_t)divisor);
        at->reach = reach;
        at->divisor = divisor;
        if (!dms_mul_u64(bytes, (uint64_t)at->most + 1, &bytes) || bytes > (uint64_t)reach + element_size)
            return DMS_OVERLAPS;        /* more bytes of elements than the range holds */
    }
    if (nested)
        return DMS_DISJOINT;
    if (reach > INT64_MAX / 4 - s.element_size)
        return DMS_UNDECIDED;           /* room for the sums of the search; no machine has such a tensor */
    return find(&s, count, 0, false);
}
