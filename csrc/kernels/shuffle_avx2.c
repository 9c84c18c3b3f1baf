/* shuffle_avx2.c - small rows by byte shuffles of avx2 vectors */
#include "../dms_shuffle.h"

#if DMS_X86
#include "vector_avx2.h"

#include "shuffle_template.h"
#endif
