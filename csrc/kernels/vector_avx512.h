/* vector_avx512.h - the words of the templates, with 64-byte vectors */
#include <immintrin.h>

#define DMS_NAME(name) name##_avx512
#define DMS_TARGET DMS_TARGET_AVX512
#define VECTOR 64

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
