/* layout.c - the elements that tensors of RANK dimensions have, of any sizes of 32 bits; with MOST_SIZE, and any strides of 32 bits, the places as well */
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
#ifdef MOST_SIZE
        sizes[d] = 1 + (uint32_t)any_below(MOST_SIZE);
#else
        sizes[d] = (uint32_t)any_u64();
#endif
        strides[d] = (uint32_t)any_u64();
        elements *= sizes[d];
        last += (unsigned __int128)(sizes[d] - 1) * strides[d];
    }
    const uint64_t count = dms_element_count(&desc);
    CLAIM(elements > UINT32_MAX ? count == UINT64_MAX : count == elements);
#ifdef MOST_SIZE
    CLAIM(dms_exact_extent(&desc, count) == last + 1);
    CLAIM(!dms_is_nested(&desc) || count <= last + 1);
#else
    (void)last;
#endif
    REACHED;
    return 0;
}
