/* transpose_avx512.c - matrices turned by avx512 vectors: the kernels columns_avx512 and transpose_avx512 */
#include "../dms_transpose.h"

#if DMS_X86
#include "vector_avx512.h"

#include "transpose_template.h"
#endif
