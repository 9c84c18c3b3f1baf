/* dms_cpuid.c - CPUID and XCR0, in the syntax of each compiler */
#include "dms_cpuid.h"

#if DMS_X86 && DMS_MSVC
#include <intrin.h>
#include <string.h>
#elif DMS_X86
#include <cpuid.h>
#endif

#ifdef DMS_TESTING
bool (*dms_other_cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t *registers);
#endif

bool dms_cpuid(uint32_t leaf, uint32_t subleaf, dms_cpuid_registers *r)
{
#ifdef DMS_TESTING
    if (dms_other_cpuid != NULL)
        return dms_other_cpuid(leaf, subleaf, &r->eax);
#endif
#if DMS_X86 && DMS_MSVC
    int out[4];
    __cpuid(out, (int)(leaf & 0x80000000u));    /* the last leaf of its range */
    if ((uint32_t)out[0] < leaf)
        return false;
    __cpuidex(out, (int)leaf, (int)subleaf);
    memcpy(r, out, sizeof out);
    return true;
#elif DMS_X86
    return __get_cpuid_count(leaf, subleaf, &r->eax, &r->ebx, &r->ecx, &r->edx) != 0;
#else
    (void)leaf, (void)subleaf, (void)r;
    return false;
#endif
}

uint32_t dms_saved_registers(void)
{
    uint32_t low = 0, high = 0;
#if DMS_X86 && DMS_MSVC
    low = (uint32_t)_xgetbv(0);
#elif DMS_X86
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
#endif
    (void)high;
    return low;
}
