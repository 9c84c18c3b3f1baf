/* memcpy.c - contiguous runs by the C library's memcpy */
#include "../dms_kernel.h"

/* Below about this many bytes the call costs more than the copy (measured: memcpy of single bytes takes ten times the scalar loop's time). */
#define SHORTEST_RUN 32u

const char *dms_accept_memcpy(const dms_nest *nest)
{
    return nest->run >= SHORTEST_RUN ? NULL : "contiguous runs are shorter than 32 bytes";
}

void dms_run_memcpy(const dms_nest *nest, char *target, const char *source)
{
    dms_copy_nest(nest, target, source, nest->run);
}
