/* avx512vbmi.c - the kernels of 64-byte vectors that are permuted by bytes */
#include "../dms_kernel.h"

#if DMS_AVX512
#define PERMUTES_BYTES
#include "vector_avx512.h"

#include "channels_avx512vbmi.h"
#include "shuffle_template.h"
#endif
