/* shuffle_ssse3.c - small rows by byte shuffles of ssse3 vectors */
#include "../dms_shuffle.h"

#if DMS_X86
#include "vector_ssse3.h"

#include "shuffle_template.h"
#endif
