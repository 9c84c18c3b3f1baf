/* slices.c - COUNT slices partition the rows of any plan, or its bytes, of which there are up to MOST_BYTES in PARTS parts
 *
 * Each begins where the one before it ends, the first at 0 and the last at the end; and its parts are those that its bytes are in.
 */
#include "bounded.h"

#include "dms_slices.c"

int main(void)
{
    dms_part parts[PARTS] = {{0}};
    dmlsplit_plan plan = {.part_count = PARTS, .parts = parts, .bytes = COUNT + any_below(MOST_BYTES), .rows = COUNT + any_below(MOST_BYTES)};
    const dms_slices cut = {COUNT, BY_ROWS};
    for (uint32_t i = 1; i < PARTS; i++) {
        parts[i].before = any_u64();
        __ESBMC_assume(parts[i].before >= parts[i - 1].before && parts[i].before <= plan.bytes);
    }
    dms_slice slice = {0, 0, 0, 0};
    uint64_t end = 0;
#if BY_ROWS
    for (uint64_t index = 0; index < COUNT; index++, end = slice.last) {
        slice = dms_find_slice(&plan, &cut, index);
        CLAIM(slice.first == end && slice.last >= slice.first);
    }
    CLAIM(end == (COUNT == 1 ? plan.bytes : plan.rows));      /* one slice is the plan as a whole, in bytes */
    CLAIM(dms_find_slice(&plan, &cut, COUNT).last == 0);
#else
    const uint64_t byte = any_below(MOST_BYTES), part = byte < plan.bytes ? find_part(&plan, byte) : 0;
    CLAIM(part < PARTS && parts[part].before <= byte);
    CLAIM(byte >= plan.bytes || part + 1 == PARTS || parts[part + 1].before > byte);
#endif
    REACHED;
    return 0;
}
