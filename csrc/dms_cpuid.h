/* dms_cpuid.h - CPUID and XCR0 of x86 CPUs; other machines have neither */
#pragma once

#include "dms_internal.h"

typedef struct dms_cpuid_registers {
    uint32_t eax, ebx, ecx, edx;
} dms_cpuid_registers;

/* Sets *r by the instruction CPUID. Returns false if this CPU does not have the leaf. */
bool dms_cpuid(uint32_t leaf, uint32_t subleaf, dms_cpuid_registers *r);

/* Returns XCR0, the registers that the operating system saves. Only if CPUID reports OSXSAVE. */
uint32_t dms_saved_registers(void);
