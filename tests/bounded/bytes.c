/* bytes.c - the bytes that an extent implies, for each data type and all extents of 64 bits: rounded up to 4, or said not to fit */
#include "bounded.h"

#include "dms_verdict_layout.c"

int main(void)
{
    const uint64_t extent = any_u64();
    const uint32_t bits = dms_element_bits((uint32_t)any_below(16));
    uint64_t bytes = 7;
    if (bits == 0)
        return 0;
    const unsigned __int128 words = ((unsigned __int128)extent * bits + 31) / 32;
    const _Bool fits = words * 4 <= UINT64_MAX;
    CLAIM(dms_implied_size(extent, bits, &bytes) ? fits && bytes == words * 4 : !fits && bytes == 7);
    REACHED;
    return 0;
}
