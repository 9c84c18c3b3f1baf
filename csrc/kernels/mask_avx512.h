/* mask_avx512.h - masks of 64 bytes */
#ifndef MASK_AVX512_H
#define MASK_AVX512_H

#include <immintrin.h>
#include <stdint.h>

/* Ones for the first size of 64 bytes. */
static inline __mmask64 first_bytes(size_t size)
{
    return size >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << size) - 1;
}

#endif
