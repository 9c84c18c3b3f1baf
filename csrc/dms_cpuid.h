/* dms_cpuid.h - the CPUID instruction */
#pragma once

#include "dms_internal.h"

#if DMS_MSVC
#include <intrin.h>
#else
#include <cpuid.h>
#endif

typedef struct dms_cpuid_registers {
    uint32_t eax, ebx, ecx, edx;
} dms_cpuid_registers;

/* false: this CPU does not have the leaf. */
static inline bool dms_cpuid(uint32_t leaf, uint32_t subleaf, dms_cpuid_registers *r)
{
#if DMS_MSVC
    int out[4];
    __cpuid(out, (int)(leaf & 0x80000000u));    /* the last leaf of its range */
    if ((uint32_t)out[0] < leaf)
        return false;
    __cpuidex(out, (int)leaf, (int)subleaf);
    r->eax = (uint32_t)out[0];
    r->ebx = (uint32_t)out[1];
    r->ecx = (uint32_t)out[2];
    r->edx = (uint32_t)out[3];
    return true;
#else
    return __get_cpuid_count(leaf, subleaf, &r->eax, &r->ebx, &r->ecx, &r->edx) != 0;
#endif
}
