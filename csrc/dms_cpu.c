/* dms_cpu.c - what this CPU has, asked once and at run time */
#include "dms_internal.h"
#include "dms_text.h"

#if DMS_X86
#if DMS_MSVC
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

typedef struct isa_name {
    uint32_t isa;
    const char *name;
} isa_name;

static const isa_name isa_names[] = {
    {DMS_ISA_SSSE3, "ssse3"},           {DMS_ISA_AVX2, "avx2"}, {DMS_ISA_AVX512, "avx512"},
    {DMS_ISA_AVX512VBMI, "avx512vbmi"}, {DMS_ISA_NEON, "neon"},
};

#define ISA_NAME_COUNT (sizeof isa_names / sizeof isa_names[0])

const char *dms_isa_name(uint32_t isa)
{
    for (size_t i = 0; i < ISA_NAME_COUNT; i++)
        if (isa_names[i].isa == isa)
            return isa_names[i].name;
    return "any";
}

/* ---- Detection ---- */

#if DMS_X86

typedef struct cpuid_registers {
    uint32_t eax, ebx, ecx, edx;
} cpuid_registers;

static bool cpuid(uint32_t leaf, cpuid_registers *r)
{
#if DMS_MSVC
    int out[4];
    __cpuid(out, 0);
    if ((uint32_t)out[0] < leaf)
        return false;
    __cpuidex(out, (int)leaf, 0);
    r->eax = (uint32_t)out[0];
    r->ebx = (uint32_t)out[1];
    r->ecx = (uint32_t)out[2];
    r->edx = (uint32_t)out[3];
    return true;
#else
    return __get_cpuid_count(leaf, 0, &r->eax, &r->ebx, &r->ecx, &r->edx) != 0;
#endif
}

/* XCR0: the register sets that the operating system saves. Only where CPUID reports OSXSAVE. */
static uint32_t saved_registers(void)
{
#if DMS_MSVC
    return (uint32_t)_xgetbv(0);
#else
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
#endif
}

static bool has(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

/* Bit numbers: Intel SDM volume 2A, CPUID; volume 1, 13.3 for XCR0. */
static uint32_t detect(void)
{
    const uint32_t ssse3 = 1u << 9, osxsave = 1u << 27;                                             /* leaf 1 ecx */
    const uint32_t avx2 = 1u << 5, avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;              /* leaf 7 ebx; F, DQ, BW, VL */
    const uint32_t vbmi = 1u << 1;                                                                  /* leaf 7 ecx */
    const uint32_t ymm = 1u << 1 | 1u << 2, zmm = 1u << 5 | 1u << 6 | 1u << 7;                      /* XCR0; SSE, AVX; opmask, ZMM */
    cpuid_registers one, seven;
    uint32_t isa = 0;
    if (!cpuid(1, &one) || !has(one.ecx, ssse3))
        return isa;
    isa |= DMS_ISA_SSSE3;
    if (!has(one.ecx, osxsave) || !cpuid(7, &seven))
        return isa;
    const uint32_t saved = saved_registers();
    if (!has(saved, ymm) || !has(seven.ebx, avx2))
        return isa;
    isa |= DMS_ISA_AVX2;
    if (!has(saved, zmm) || !has(seven.ebx, avx512))
        return isa;
    isa |= DMS_ISA_AVX512;
    if (has(seven.ecx, vbmi))
        isa |= DMS_ISA_AVX512VBMI;
    return isa;
}

#elif DMS_NEON

static uint32_t detect(void)
{
    return DMS_ISA_NEON;
}

#else

static uint32_t detect(void)
{
    return 0;
}

#endif

/* ---- Cache. Threads that race compute the same value, so no order is needed. ---- */

#define DETECTED (1u << 31)             /* tells a detected 0 from no answer yet */

#if DMS_MSVC

static volatile long cached;

static uint32_t load_cached(void)
{
    return (uint32_t)_InterlockedOr(&cached, 0);
}

static void store_cached(uint32_t value)
{
    (void)_InterlockedExchange(&cached, (long)value);
}

#else

#include <stdatomic.h>

static _Atomic uint32_t cached;

static uint32_t load_cached(void)
{
    return atomic_load_explicit(&cached, memory_order_relaxed);
}

static void store_cached(uint32_t value)
{
    atomic_store_explicit(&cached, value, memory_order_relaxed);
}

#endif

uint32_t dms_cpu_isa(void)
{
    uint32_t value = load_cached();
    if (value == 0) {
        value = detect() | DETECTED;
        store_cached(value);
    }
    return value & ~DETECTED;
}

#ifdef DMS_TESTING
void dms_cpu_mask(uint32_t mask)
{
    store_cached((detect() & mask) | DETECTED);
}
#endif

size_t dmlsplit_cpu_features(char *buffer, size_t capacity)
{
    dms_text text = dms_text_start(buffer, capacity);
    for (size_t i = 0; i < ISA_NAME_COUNT; i++)
        if ((dms_cpu_isa() & isa_names[i].isa) != 0)
            dms_text_add(&text, "%s%s", text.length > 0 ? " " : "", isa_names[i].name);
    return text.length;
}
