/* dms_memory.h - allocation; tests make each one fail once */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Return memory for `count` entries of `size` bytes, to be freed by free(); NULL if there is none, or if the size in
 * bytes overflows. size is not 0. */
void *dms_allocate(uint64_t count, size_t size);
void *dms_allocate_zeroed(uint64_t count, size_t size);

/* True if the next allocation of memory or start of a thread must fail; counts the call. False outside tests. */
bool dms_fails(void);

#ifdef DMS_TESTING
/* How many allocations succeed before one fails; UINT64_MAX: all. Not thread-safe: tests that set it start no
 * threads. */
extern uint64_t dms_until_failure;
#endif
