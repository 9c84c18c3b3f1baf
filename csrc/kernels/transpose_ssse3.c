/* transpose_ssse3.c - matrices turned by ssse3 vectors: the kernels columns_ssse3 and transpose_ssse3 */
#include "../dms_transpose.h"

#if DMS_X86
#include "vector_ssse3.h"

#include "transpose_template.h"
#endif
