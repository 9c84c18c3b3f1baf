/* ssse3.c - the kernels of 16-byte vectors on x86 */
#include "../dms_kernel.h"

#if DMS_SSSE3
#define VECTOR 16
#include "vector_x86.h"

#include "channels_template.h"
#include "moves_template.h"
#include "reverse_template.h"
#include "rows_template.h"
#include "shuffle_template.h"
#include "transpose_template.h"
#endif
