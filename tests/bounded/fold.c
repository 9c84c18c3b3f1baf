/* fold.c - each rewriting of folding keeps every address: of any space of RANK dimensions up to MOST_SIZE, with the whole and PARTS parts, any strides
 * and offsets of 64 bits
 *
 * STEP: 1 merges, 2 turns, 3 absorbs, 4 drops and sorts. Addresses are compared modulo 2^64, in which the core computes them.
 */
#include "bounded.h"

#include <string.h>

/* Of words, which all that folding copies consists of. */
static void copy_words(uint64_t *to, const uint64_t *from, size_t size)
{
    for (size_t i = 0; i < size / sizeof *to; i++)
        to[i] = from[i];
}
#define memcpy(to, from, size) copy_words((uint64_t *)(to), (const uint64_t *)(from), size)

#include "dms_fold.c"

enum { OPERANDS = PARTS + 1 };

/* A row has an entry more than it needs: of rows of one entry ESBMC 7.7 takes the first for every one. */
static int64_t strides[OPERANDS][RANK + 1], before[OPERANDS][RANK + 1], offsets[OPERANDS];
static uint64_t lengths[OPERANDS], sizes[RANK];
static dms_operand operands[OPERANDS];

/* The size of a dimension for an operand. */
static uint64_t size_of(const dms_space *space, uint32_t dimension, uint32_t operand)
{
    return dimension == space->axis ? lengths[operand] : sizes[dimension];
}

int main(void)
{
    dms_space space;
    const uint32_t axis = (uint32_t)any_below(RANK + 1), a = (uint32_t)any_below(RANK), b = (uint32_t)any_below(RANK);
    const uint64_t element_size = 1 + any_below(16), i = any_below(MOST_SIZE), j = any_below(MOST_SIZE);
    space.rank = RANK;
    space.element_size = element_size;
    space.operand_count = OPERANDS;
    space.operands = operands;
    space.trace = NULL;
    space.axis = axis == RANK ? DMS_NO_AXIS : axis;
    for (uint32_t d = 0; d < RANK; d++)
        space.sizes[d] = sizes[d] = 1 + any_below(MOST_SIZE);
    for (uint32_t o = 0; o < OPERANDS; o++) {
        lengths[o] = 1 + any_below(MOST_SIZE);
        offsets[o] = (int64_t)any_below(UINT64_C(1) << 62);
        for (uint32_t d = 0; d < RANK; d++) {
            strides[o][d] = before[o][d] = (int64_t)any_u64();
            __ESBMC_assume(strides[o][d] > -(INT64_C(1) << 59) && strides[o][d] < INT64_C(1) << 59);  /* the ranges of tensors fit */
        }
        operands[o] = (dms_operand){lengths[o], offsets[o], strides[o]};
    }
#if STEP == 1
    if (!is_loop(&space, a) || !is_loop(&space, b) || a == b || b == space.axis || !continues(&space, a, b))
        return 0;
    merge(&space, a, b);
    CLAIM(space.sizes[b] == 1);
    for (uint32_t o = 0; o < OPERANDS; o++) {
        if (i >= size_of(&space, a, o) || j >= sizes[b])
            continue;
        const uint64_t index = i * sizes[b] + j;
        CLAIM(index < (a == space.axis ? operands[o].length : space.sizes[a]));
        CLAIM(i * (uint64_t)before[o][a] + j * (uint64_t)before[o][b] == index * (uint64_t)strides[o][a]);
    }
#elif STEP == 2
    reverse_negative(&space);
    for (uint32_t d = 0; d < RANK; d++)
        CLAIM(d == space.axis || strides[0][d] >= 0);
    for (uint32_t o = 0; o < OPERANDS; o++) {
        uint64_t was = (uint64_t)offsets[o], is = (uint64_t)operands[o].offset;
        for (uint32_t d = 0; d < RANK; d++) {
            const bool turned = d != space.axis && before[0][d] < 0;
            const uint64_t index = any_below(MOST_SIZE);
            __ESBMC_assume(index < size_of(&space, d, o));
            was += index * (uint64_t)before[o][d];
            is += (turned ? sizes[d] - 1 - index : index) * (uint64_t)strides[o][d];
        }
        CLAIM(was == is);
    }
#elif STEP == 3
    if (a == space.axis || !is_contiguous(&space, a))
        return 0;
    absorb_contiguous(&space);
    for (uint32_t o = 0; o < OPERANDS; o++)
        CLAIM(before[o][a] == (int64_t)element_size);
    for (uint32_t d = 0; d < space.rank; d++)
        CLAIM(d == space.axis || space.sizes[d] != 1);
    CLAIM(space.element_size % element_size == 0 && space.element_size / element_size <= MOST_SIZE);
#else
    arrange(&space);
    CLAIM(space.rank <= RANK && (space.axis == DMS_NO_AXIS ? axis == RANK : space.axis + 1 == space.rank));
    bool found = !(a == axis || sizes[a] != 1);
    for (uint32_t d = 0; d < space.rank; d++) {
        bool same = (d == space.axis) == (a == axis) && space.sizes[d] == sizes[a];
        for (uint32_t o = 0; o < OPERANDS; o++)
            same = same && strides[o][d] == before[o][a];
        found = found || same;
    }
    CLAIM(found);
#endif
    REACHED;
    return 0;
}
