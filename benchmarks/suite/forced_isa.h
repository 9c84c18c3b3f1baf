/* forced_isa.h - an environment variable that names the widest instruction set; suite/builds.py adds it to dms_cpu.c of each build that it compares */
#pragma once

#include "dms_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The bits of all sets up to the named one; without the variable, all bits. */
static uint32_t forced_isa(void)
{
    static const struct {
        const char *name;
        uint32_t isa;
    } sets[] = {
        {"any", 0},
        {"ssse3", DMS_ISA_SSSE3},
        {"avx2", DMS_ISA_AVX2},
        {"avx512", DMS_ISA_AVX512},
        {"avx512vbmi", DMS_ISA_AVX512VBMI},
    };
    const char *const widest = getenv("DMLSPLIT_FORCED_ISA");
    uint32_t isa = 0;
    if (widest == NULL)
        return UINT32_MAX;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        isa |= sets[i].isa;
        if (strcmp(widest, sets[i].name) == 0)
            return isa;
    }
    return UINT32_MAX;
}
