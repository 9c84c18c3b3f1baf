/* geometry.c - the bytes that a tensor touches: of RANK dimensions, with sizes up to MOST_SIZE and any strides of 64 bits */
#include "bounded.h"

#include "dms_geometry.c"

int main(void)
{
    uint64_t sizes[RANK];
    int64_t strides[RANK], begin = 0, end = 0;
    uint32_t dimension = RANK;
    const uint64_t element_size = 1 + any_below(16);
    __int128 low = 0, high = element_size;
    for (uint32_t d = 0; d < RANK; d++) {
        sizes[d] = 1 + any_below(MOST_SIZE);
        strides[d] = (int64_t)any_u64();
        const __int128 span = (__int128)strides[d] * (__int128)(sizes[d] - 1);
        *(span < 0 ? &low : &high) += span;
    }
    const bool fits = dms_byte_range(RANK, sizes, strides, element_size, &begin, &end, &dimension);
    CLAIM(fits == (high - low <= INT64_MAX));
    CLAIM(!fits || (begin == low && end == high));
    CLAIM(fits || dimension < RANK);
    REACHED;
    return 0;
}
