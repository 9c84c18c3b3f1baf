/* dms_cpu.c - what this CPU has, asked once and at run time */
#include "dms_cached.h"
#include "dms_internal.h"
#include "dms_text.h"

#if DMS_SSSE3
#include "dms_cpuid.h"
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

#if DMS_SSSE3

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
    dms_cpuid_registers one, seven;
    uint32_t isa = 0;
    if (!dms_cpuid(1, 0, &one) || !has(one.ecx, ssse3))
        return isa;
    isa |= DMS_ISA_SSSE3;
    if (!DMS_AVX2 || !has(one.ecx, osxsave) || !dms_cpuid(7, 0, &seven))
        return isa;
    const uint32_t saved = saved_registers();
    if (!has(saved, ymm) || !has(seven.ebx, avx2))
        return isa;
    isa |= DMS_ISA_AVX2;
    if (!DMS_AVX512 || !has(saved, zmm) || !has(seven.ebx, avx512))
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

/* ---- Answers ---- */

#define DETECTED (1u << 31)             /* tells a detected 0 from no answer yet */

static dms_cached cached;

uint32_t dms_cpu_isa(void)
{
    uint32_t value = dms_load_cached(&cached);
    if (value == 0) {
        value = detect() | DETECTED;
        dms_store_cached(&cached, value);
    }
    return value & ~DETECTED;
}

#ifdef DMS_TESTING
void dms_cpu_mask(uint32_t mask)
{
    dms_store_cached(&cached, (detect() & mask) | DETECTED);
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
