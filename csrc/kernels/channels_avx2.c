/* channels_avx2.c - 2, 3 or 4 parts of equal width by avx2 vectors */
#include "../dms_channels.h"

#if DMS_X86
#include "vector_avx2.h"

#include "channels_template.h"
#endif
