/* avx512.c - the kernels of 64-byte vectors */
#include "../dms_kernel.h"

#if DMS_AVX512
#include "vector_avx512.h"

#include "qwords_avx512.h"
#include "rows_template.h"
#include "transpose_template.h"
#endif
