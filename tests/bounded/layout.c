/* layout.c - what tensors of RANK dimensions have, for any sizes and strides of 32 bits: elements, places, bytes */
#include "bounded.h"

#include "dms_verdict_layout.c"

int main(void)
{
    uint32_t sizes[RANK], strides[RANK];
    DML_BUFFER_TENSOR_DESC desc;
    desc.DimensionCount = RANK;
    desc.Sizes = sizes;
    desc.Strides = strides;
    unsigned __int128 elements = 1, last = 0;
    for (uint32_t d = 0; d < RANK; d++) {
        sizes[d] = (uint32_t)any_u64();
        strides[d] = (uint32_t)any_u64();
        elements *= sizes[d];
        last += (unsigned __int128)(sizes[d] - 1) * strides[d];
    }
    const uint64_t count = dms_element_count(&desc);
    CLAIM(elements > UINT32_MAX ? count == UINT64_MAX : count == elements);
    if (count == 0 || count > UINT32_MAX)
        return 0;
    CLAIM(dms_exact_extent(&desc, count) == last + 1);
    if (dms_is_nested(&desc))
        CLAIM(count <= last + 1);
    REACHED;
    return 0;
}
