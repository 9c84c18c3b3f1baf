/* ssse3.c - the kernels of 16-byte vectors on x86 */
#include "../dms_kernel.h"

#if DMS_SSSE3
#include "vector_ssse3.h"

#include "channels_template.h"
#include "rows_template.h"
#include "shuffle_template.h"
#include "transpose_template.h"
#endif
