/* pointers.c - a program's own pointers, as it has them, are taken without a cast: compiled as C and as C++ with the warnings as errors, not run */
#include "dmlsplit.h"

dmlsplit_status split_checked(const dmlsplit_plan *plan, const void *whole, void *const *parts);
dmlsplit_status join_checked(const dmlsplit_plan *plan, const void *const *parts, void *whole);

dmlsplit_status split_checked(const dmlsplit_plan *plan, const void *whole, void *const *parts)
{
    const dmlsplit_status status = dmlsplit_plan_check_ranges(plan, whole, parts, NULL);
    return status == DMLSPLIT_OK ? dmlsplit_split(plan, whole, parts) : status;
}

dmlsplit_status join_checked(const dmlsplit_plan *plan, const void *const *parts, void *whole)
{
    const dmlsplit_status status = dmlsplit_plan_check_ranges(plan, whole, parts, NULL);
    return status == DMLSPLIT_OK ? dmlsplit_join(plan, parts, whole) : status;
}
