/* dms_verdict_layout.c - how many elements and bytes a tensor has, exactly and as a build counts them, and whether two elements meet
 *
 * In elements, as DirectML has it, where dms_geometry.c counts in bytes. The search goes the way of the Python package's, step by step, so that both
 * give up on the same tensors. Signs of strides do not matter to it: a difference of indices has either sign.
 */
#include "dms_verdict.h"

/* Differences of two places of one tensor take 66 bits. Where a compiler has no such integers, a tensor that reaches over 2^61 elements counts as
 * one whose overlap is undecided. */
#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 wide;
#define FARTHEST UINT64_MAX
#else
typedef int64_t wide;
#define FARTHEST (UINT64_MAX >> 3)
#endif

#define SEARCH_STEPS 20000              /* of the search for an overlap */

uint32_t dms_element_bits(uint32_t data_type)
{
    static const unsigned char bits[] = {0, 32, 16, 32, 16, 8, 32, 16, 8, 64, 64, 64, 4, 4};
    return data_type < sizeof bits ? bits[data_type] : 0;
}

uint64_t dms_element_count(const DML_BUFFER_TENSOR_DESC *t)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < t->DimensionCount; d++) {
        count *= t->Sizes[d];
        if (count > UINT32_MAX) {
            while (++d < t->DimensionCount)
                if (t->Sizes[d] == 0)
                    return 0;
            return UINT64_MAX;
        }
    }
    return count;
}

uint64_t dms_exact_extent(const DML_BUFFER_TENSOR_DESC *t, uint64_t count)
{
    uint64_t last = 0;                  /* so few elements reach less than 2^64 places */
    if (t->Strides == NULL)
        return count;
    for (uint32_t d = 0; d < t->DimensionCount; d++)
        last += (uint64_t)(t->Sizes[d] - 1) * t->Strides[d];
    return last + 1;
}

/* value modulo 2^bits */
static uint64_t low_bits(uint64_t value, uint32_t bits)
{
    return bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value;
}

static uint32_t log2_of(uint32_t bits)  /* 4 to 64 */
{
    return bits == 4 ? 2 : bits == 8 ? 3 : bits == 16 ? 4 : bits == 32 ? 5 : 6;
}

uint64_t dms_counted_extent(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact)
{
    if (t->Strides == NULL)
        return exact;
    switch (arithmetic) {
    case BYTES_32: return low_bits(exact, 32);
    case INDEX_32: return low_bits(exact - 1, 32) + 1;
    case BYTES_64: return low_bits(exact, 67 - log2_of(dms_element_bits(t->DataType)));
    case BITS_64: return low_bits(exact, 64 - log2_of(dms_element_bits(t->DataType)));
    default: return exact;
    }
}

bool dms_implied_size(uint64_t extent, uint32_t bits, uint64_t *bytes)
{
    const uint32_t in_word = bits < 32 ? 32 / bits : 1, words = bits < 32 ? 1 : bits / 32;
    const uint64_t units = extent / in_word + (extent % in_word != 0);
    if (units > UINT64_MAX / 4 / words)
        return false;
    *bytes = units * words * 4;
    return true;
}

bool dms_counted_size(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact, uint64_t *bytes)
{
    const uint64_t extent = dms_counted_extent(arithmetic, t, exact);
    const uint32_t bits = dms_element_bits(t->DataType);
    if (t->Strides == NULL || arithmetic != BYTES_32)
        return dms_implied_size(extent, bits, bytes);
    *bytes = (low_bits(extent * bits, 35) + 31) / 32 * 4;
    return true;
}

bool dms_is_nested(const DML_BUFFER_TENSOR_DESC *t)
{
    uint64_t reach = 0;
    for (uint32_t d = t->DimensionCount; d-- > 0;) {
        if (t->Sizes[d] == 1)
            continue;
        if (t->Strides[d] <= reach)
            return false;
        reach += (uint64_t)(t->Sizes[d] - 1) * t->Strides[d];
    }
    return true;
}

typedef struct search {
    const dms_dimension *dims;
    wide slack;                         /* places at which elements that are not at one place meet */
    int32_t budget;
} search;

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static wide floor_divide(wide a, wide b)
{
    return a / b - (a % b < 0);
}

static bool find(search *s, uint32_t left, wide total, bool nonzero);

static bool try_step(search *s, uint32_t left, wide total, bool nonzero, wide d)
{
    const dms_dimension *at = &s->dims[left - 1];
    if (--s->budget < 0)
        return false;
    const wide rest = total + d * (wide)at->stride, distance = rest < 0 ? -rest : rest, divisor = (wide)at->divisor;
    const wide beyond = divisor != 0 ? distance % divisor : distance;   /* the dimensions inside move in multiples of it, or not at all */
    const bool reachable = beyond <= s->slack || (divisor != 0 && divisor - beyond <= s->slack);
    return reachable && find(s, left - 1, rest, nonzero || d != 0);
}

/* Whether some vector of differences of indices, not all 0, leads back to the same place or near it. Those nearest to 0 are tried first. */
static bool find(search *s, uint32_t left, wide total, bool nonzero)
{
    if (left == 0)
        return nonzero;                 /* near, or it would not have been reachable */
    const dms_dimension *at = &s->dims[left - 1];
    const wide stride = (wide)at->stride, steps = (wide)at->steps, inner = (wide)at->reach + s->slack;
    wide low = -floor_divide(total + inner, stride), high = floor_divide(inner - total, stride);
    if (low < (nonzero ? -steps : 0))
        low = nonzero ? -steps : 0;
    if (high > steps)
        high = steps;
    wide above = low > 0 ? low : 0;
    if (above > high)
        above = high;
    wide below = above - 1;
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

void dms_add_dimension(dms_dimension *dims, uint32_t *count, uint64_t stride, uint64_t steps)
{
    uint32_t at = (*count)++;
    for (; at > 0 && dims[at - 1].stride > stride; at--)
        dims[at] = dims[at - 1];
    dims[at].stride = stride;
    dims[at].steps = steps;
}

bool dms_dimensions_meet(dms_dimension *dims, uint32_t count, uint64_t width, int32_t *budget)
{
    const uint64_t slack = width - 1;
    search s = {dims, (wide)slack, *budget};
    uint64_t reach = 0, divisor = 0;
    bool nested = true;
    for (uint32_t i = 0; i < count; i++) {
        dims[i].reach = reach;
        dims[i].divisor = divisor;
        nested = nested && dims[i].stride > reach + slack;
        reach += dims[i].stride * dims[i].steps;
        divisor = common_divisor(dims[i].stride, divisor);
    }
    if (nested)
        return false;
    const bool found = reach <= FARTHEST && find(&s, count, 0, false);
    *budget = reach <= FARTHEST ? s.budget : -1;
    return found;
}

bool dms_elements_meet(const DML_BUFFER_TENSOR_DESC *t)
{
    dms_dimension dims[DMS_MOST_DIMENSIONS];
    uint32_t count = 0;
    int32_t budget = SEARCH_STEPS;
    for (uint32_t d = 0; d < t->DimensionCount; d++)
        if (t->Sizes[d] > 1)
            dms_add_dimension(dims, &count, t->Strides[d], t->Sizes[d] - 1);
    return dms_dimensions_meet(dims, count, 1, &budget);
}
