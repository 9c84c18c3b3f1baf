/* vector_avx512vbmi.h - the words of shuffle_template.h, with 64-byte vectors that are shuffled as a whole */
#include <immintrin.h>

#define DMS_NAME(name) name##_avx512vbmi
#define DMS_TARGET DMS_TARGET_AVX512VBMI
#define VECTOR 64
#define LEAVE(streamed) DMS_LEAVE_AVX(streamed)
#define LANES 1

#include "mask_avx512.h"

typedef __m512i vector;

static inline DMS_TARGET vector load(const char *from)
{
    return _mm512_loadu_si512((const void *)from);
}

static inline DMS_TARGET void store(char *to, vector v)
{
    _mm512_storeu_si512((void *)to, v);
}

static inline DMS_TARGET void stream(char *to, vector v)    /* aligned */
{
    _mm512_stream_si512((void *)to, v);
}

static inline DMS_TARGET vector load_lanes(const char *from, size_t step)
{
    (void)step;
    return load(from);
}

static inline DMS_TARGET void store_lanes(char *to, size_t step, vector v)
{
    (void)step;
    store(to, v);
}

static inline DMS_TARGET vector load_table(const uint8_t *table)
{
    return _mm512_loadu_si512((const void *)table);
}

/* The table that moves byte 0 to byte fill, and the end of a vector to its begin. */
static inline DMS_TARGET vector rotation_by(size_t fill)
{
    static const uint8_t iota[DMS_LINE] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                           22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                                           44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    return _mm512_sub_epi8(_mm512_loadu_si512(iota), _mm512_set1_epi8((char)fill));
}

#define ROTATE(v, rotation) _mm512_permutexvar_epi8(rotation, v)

static inline DMS_TARGET vector shuffle_bytes(vector v, vector table, uint64_t mask)
{
    return _mm512_maskz_permutexvar_epi8(mask, table, v);
}

static inline DMS_TARGET vector shuffle_into(vector woven, vector v, vector table, uint64_t mask)
{
    return _mm512_mask_permutexvar_epi8(woven, mask, table, v);
}
