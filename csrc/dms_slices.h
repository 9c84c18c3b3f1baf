/* dms_slices.h - what the ways to cut a run into slices share (dms_slices.c, dms_slices_bytes.c) */
#ifndef DMS_SLICES_H
#define DMS_SLICES_H

#include "dms_kernel.h"

enum {
    BLOCK = 128,                        /* bytes that two threads should not write together: a line on Apple's Arm, two neighbours on x86 */
    LEAST_GAPS = 24                     /* rows of a slice, as a multiple of those that hold a block: they keep shares equal within a tenth */
};

typedef enum method { CUT_NOT, CUT_ROWS, CUT_LINES, CUT_BYTES } method;

/* What one call does. */
typedef struct slice {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    uint64_t index, count;
    uint64_t rows, gap;                 /* CUT_ROWS, CUT_LINES: how many there are, and how many hold a block */
    method method;
} slice;

static inline uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uintptr_t block_end(uintptr_t address)
{
    return (address + BLOCK - 1) / BLOCK * BLOCK;
}

/* value * index / count for what may not be multiplied. */
static inline uint64_t share(uint64_t value, uint64_t index, uint64_t count)
{
    return value / count * index + value % count * index / count;
}

static inline bool is_split(const dmlsplit_plan *plan)
{
    return plan->direction == DMLSPLIT_SPLIT;
}

/* A kernel that turns a matrix cannot be cut anywhere: one line of the target is no work for it. */
static inline bool turns(const dms_kernel *kernel)
{
    return strncmp(kernel->name, "transpose", 9) == 0 || strncmp(kernel->name, "planes", 6) == 0;
}

/* Bytes between the first and the last step of a loop. */
static inline uint64_t reach_of(int64_t stride, uint64_t size)
{
    return (size - 1) * (uint64_t)(stride < 0 ? -stride : stride);
}

/* A nest at its place, and the kernel that copies any part of it. */
typedef struct copy {
    const dms_kernel *kernel;
    const dms_nest *nest;
    char *target;
    const char *source;
} copy;

/* Part number's nest. */
copy dms_find_copy(const slice *s, uint64_t number);

/* Moves both pointers to a run by its number in the order of so many loops. */
static inline void find_run(const dms_loop *loops, uint32_t rank, uint64_t number, char **target, const char **source)
{
    for (uint32_t d = rank; d-- > 0; number /= loops[d].size) {
        *target += (int64_t)(number % loops[d].size) * loops[d].target_stride;
        *source += (int64_t)(number % loops[d].size) * loops[d].source_stride;
    }
}

/* Whether bytes can be cut: what is written follows in the order of the loops. */
bool dms_cuts_bytes(const dmlsplit_plan *plan);

/* A slice of bytes. */
void dms_copy_bytes(const slice *s);

#endif
