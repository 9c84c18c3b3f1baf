/* dms_verdict_layout.c - how many elements and bytes a tensor has, exactly and as a build counts them, and whether two elements overlap
 *
 * Counts elements, as DirectML does; dms_geometry.c counts bytes.
 */
#include "dms_verdict_layout.h"

#include "dms_operator.h"
#include "dms_overlap.h"

#define SEARCH_STEPS 20000              /* limit of the overlap search, as in the Python package */

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
    uint64_t last = 0;                  /* cannot overflow: there are at most UINT32_MAX elements */
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

bool dms_elements_overlap(const DML_BUFFER_TENSOR_DESC *t)
{
    dms_dimension dims[DMS_MOST_DIMENSIONS];
    uint32_t count = 0;
    int32_t budget = SEARCH_STEPS;
    for (uint32_t d = 0; d < t->DimensionCount; d++)
        if (t->Sizes[d] > 1)
            dms_add_dimension(dims, &count, t->Strides[d], t->Sizes[d] - 1);
    return dms_dimensions_overlap(dims, count, 1, &budget);
}
