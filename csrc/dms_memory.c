/* dms_memory.c - allocation; tests make each one fail once */
#include "dms_memory.h"

#ifdef DMS_TESTING
uint64_t dms_until_failure = UINT64_MAX;
#endif

bool dms_fails(void)
{
#ifdef DMS_TESTING
    return dms_until_failure != UINT64_MAX && dms_until_failure-- == 0;
#else
    return false;
#endif
}

void *dms_allocate(uint64_t count, size_t size)
{
    return !dms_fails() && count <= (uint64_t)PTRDIFF_MAX / size ? malloc((size_t)count * size) : NULL;
}

void *dms_allocate_zeroed(uint64_t count, size_t size)
{
    return !dms_fails() && count <= (uint64_t)PTRDIFF_MAX / size ? calloc((size_t)count, size) : NULL;
}
