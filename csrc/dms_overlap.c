/* dms_overlap.c - the search for two elements that overlap
 *
 * Two elements overlap if some vector of index differences, not all 0, leads to a distance below their width. The
 * search tries vectors dimension by dimension, largest stride first, differences nearest to 0 first. It takes the same
 * steps as the Python package, so both give up on the same tensors. Distances have 64 bits and a separate sign, so that
 * no wider integer type is needed.
 */
#include "dms_overlap.h"

typedef struct search {
    const dms_dimension *dims;
    uint64_t slack;                     /* largest distance at which two elements overlap: width - 1 */
    int32_t budget;
} search;

/* A distance and its sign. */
typedef struct distance {
    uint64_t size;
    bool negative;
} distance;

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns from + times * stride, which is at most the inner dimensions' reach. */
static distance go(distance from, int64_t times, uint64_t stride)
{
    const distance by = {(times < 0 ? 0 - (uint64_t)times : (uint64_t)times) * stride, times < 0};
    distance sum = {from.size + by.size, from.negative};
    if (from.negative != by.negative && from.size >= by.size)
        sum.size = from.size - by.size;
    else if (from.negative != by.negative)
        sum = (distance){by.size - from.size, by.negative};
    return sum;
}

/* Returns the largest n, at most `last`, with size + n * stride <= inner, or with n * stride - size <= inner if `away`. */
static int64_t most_times(uint64_t size, bool away, uint64_t inner, uint64_t stride, uint64_t last)
{
    if (!away && size > inner)          /* size is at most inner + last * stride */
        return -(int64_t)((size - inner - 1) / stride + 1);
    const uint64_t room = !away ? inner - size : size > UINT64_MAX - inner ? UINT64_MAX : inner + size;
    return (int64_t)(room / stride < last ? room / stride : last);
}

static bool find(search *s, uint32_t left, distance total, bool nonzero);

static bool try_step(search *s, uint32_t left, distance total, bool nonzero, int64_t d)
{
    const dms_dimension *at = &s->dims[left - 1];
    if (--s->budget < 0)
        return false;
    const distance rest = go(total, d, at->stride);
    const uint64_t beyond = at->divisor != 0 ? rest.size % at->divisor : rest.size;     /* inner dimensions move by multiples of it */
    const bool reachable = beyond <= s->slack || (at->divisor != 0 && at->divisor - beyond <= s->slack);
    return reachable && find(s, left - 1, rest, nonzero || d != 0);
}

/* True if differences in the `left` innermost dimensions lead from `total` to a distance of at most slack. nonzero:
 * an outer difference is not 0; if it is false, one of these differences must not be 0. */
static bool find(search *s, uint32_t left, distance total, bool nonzero)
{
    if (left == 0)
        return nonzero;                 /* close enough, or it would not have been reachable */
    const dms_dimension *at = &s->dims[left - 1];
    const uint64_t inner = at->reach + s->slack;
    int64_t low = -most_times(total.size, !total.negative, inner, at->stride, at->last);
    const int64_t high = most_times(total.size, total.negative, inner, at->stride, at->last);
    if (!nonzero && low < 0)
        low = 0;                        /* a vector and its negative lead equally far */
    int64_t above = low > 0 ? low : 0;
    if (above > high)
        above = high;
    int64_t below = above - 1;
    for (; above <= high && s->budget >= 0; above++) {
        if (try_step(s, left, total, nonzero, above))
            return true;
        if (below >= low && s->budget >= 0 && try_step(s, left, total, nonzero, below--))
            return true;
    }
    for (; below >= low && s->budget >= 0; below--)
        if (try_step(s, left, total, nonzero, below))
            return true;
    return false;
}

void dms_add_dimension(dms_dimension *dims, uint32_t *count, uint64_t stride, uint64_t last)
{
    uint32_t at = (*count)++;
    for (; at > 0 && dims[at - 1].stride > stride; at--)
        dims[at] = dims[at - 1];
    dims[at].stride = stride;
    dims[at].last = last;
}

bool dms_dimensions_overlap(dms_dimension *dims, uint32_t count, uint64_t width, int32_t *budget)
{
    const uint64_t slack = width - 1;
    search s = {dims, slack, *budget};
    uint64_t reach = 0, divisor = 0;
    bool nested = true;
    for (uint32_t i = 0; i < count; i++) {
        dims[i].reach = reach;
        dims[i].divisor = divisor;
        nested = nested && dims[i].stride > reach + slack;
        reach += dims[i].stride * dims[i].last;
        divisor = common_divisor(dims[i].stride, divisor);
    }
    if (nested)
        return false;
    const bool found = find(&s, count, (distance){0, false}, false);
    *budget = s.budget;
    return found;
}
