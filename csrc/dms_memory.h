/* dms_memory.h - allocation; tests make each one fail once */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef DMS_TESTING
/* How many succeed before one fails; UINT64_MAX: all. Not thread-safe: tests that set it have no threads of their own. */
extern uint64_t dms_until_failure;

/* True if the next allocation is to fail; counts it. */
static inline bool dms_fails(void)
{
    return dms_until_failure != UINT64_MAX && dms_until_failure-- == 0;
}
#else
static inline bool dms_fails(void)
{
    return false;
}
#endif

/* Return memory for `count` entries of `size` bytes, for free(); NULL if there is none, or if the bytes are more than a pointer reaches. size is not 0. */
static inline void *dms_allocate(uint64_t count, size_t size)
{
    return !dms_fails() && count <= (uint64_t)PTRDIFF_MAX / size ? malloc((size_t)count * size) : NULL;
}

static inline void *dms_allocate_zeroed(uint64_t count, size_t size)
{
    return !dms_fails() && count <= (uint64_t)PTRDIFF_MAX / size ? calloc((size_t)count, size) : NULL;
}
