/* dms_cpu.c - the features of this CPU, detected once at run time */
#include "dms_cached.h"
#include "dms_cpuid.h"
#include "dms_text.h"

/* An instruction set: its bits in CPUID's leaves 1 and 7, and the registers that the operating system saves for it.
 * Source: Intel SDM volume 2A, CPUID; volume 1, 13.3 for XCR0. */
typedef struct isa_row {
    uint32_t isa;
    const char *name;
    bool compiled;
    uint32_t leaf1_ecx, leaf7_ebx, leaf7_ecx, saved;
} isa_row;

#define OSXSAVE (1u << 27)              /* of leaf 1 ecx: XCR0 can be read */

static const isa_row isas[] = {
    {DMS_ISA_SSSE3, "ssse3", DMS_SSSE3, 1u << 9, 0, 0, 0},
    {DMS_ISA_AVX2, "avx2", DMS_AVX2, OSXSAVE, 1u << 5, 0, 1u << 1 | 1u << 2},   /* SSE, AVX */
    {DMS_ISA_AVX512, "avx512", DMS_AVX512, 0, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, 0, 7u << 5},  /* F, DQ, BW, VL; opmask, ZMM */
    {DMS_ISA_AVX512VBMI, "avx512vbmi", DMS_AVX512, 0, 0, 1u << 1, 0},
    {DMS_ISA_NEON, "neon", DMS_NEON, 0, 0, 0, 0},
};

#define ISA_COUNT (sizeof isas / sizeof isas[0])

const char *dms_isa_name(uint32_t isa)
{
    for (size_t i = 0; i < ISA_COUNT; i++)
        if (isas[i].isa == isa)
            return isas[i].name;
    return "any";
}

static bool has(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

static uint32_t detect_isa(void)
{
    dms_cpuid_registers one = {0, 0, 0, 0}, seven = {0, 0, 0, 0};
    uint32_t isa = DMS_NEON ? DMS_ISA_NEON : 0;
    (void)dms_cpuid(1, 0, &one);
    (void)dms_cpuid(7, 0, &seven);
    const uint32_t saved = has(one.ecx, OSXSAVE) ? dms_saved_registers() : 0;
    for (const isa_row *row = isas; row->compiled && has(one.ecx, row->leaf1_ecx) && has(seven.ebx, row->leaf7_ebx) &&
                                    has(seven.ecx, row->leaf7_ecx) && has(saved, row->saved); row++)
        isa |= row->isa;                /* each bit implies those before it; NEON, which is last, is for other
                                           machines */
    return isa;
}

/* ---- Answers ---- */

#define DETECTED (1u << 31)             /* distinguishes a detected 0 from no answer yet */

static dms_cached cached;

uint32_t dms_cpu_isa(void)
{
    uint32_t value = dms_load_cached(&cached);
    if (value == 0) {
        value = detect_isa() | DETECTED;
        dms_store_cached(&cached, value);
    }
    return value & ~DETECTED;
}

#ifdef DMS_TESTING
void dms_cpu_mask(uint32_t mask)
{
    dms_store_cached(&cached, (detect_isa() & mask) | DETECTED);
}
#endif

size_t dmlsplit_cpu_features(char *buffer, size_t capacity)
{
    dms_text text = dms_text_start(buffer, capacity);
    for (size_t i = 0; i < ISA_COUNT; i++)
        if ((dms_cpu_isa() & isas[i].isa) != 0)
            dms_text_add(&text, "%s%s", text.length > 0 ? " " : "", isas[i].name);
    return text.length;
}
