/* dms_stores.c - how a plan stores in each regime, from a profile and the defaults for the members that it leaves
 * open */
#include "dms_internal.h"

dms_stores dms_stores_for(const dmlsplit_profile *p, dms_regime regime, uintptr_t claimed)
{
    const bool pages = p->fetch == DMLSPLIT_FETCH_PAGES;
    const uintptr_t ahead = pages ? DMS_PAGES_AHEAD : p->ahead > 0 ? p->ahead : DMS_LINES_AHEAD;
    dms_stores s;
    s.regime = regime;
    s.page_mask = regime == DMS_STREAMED && pages ? 4095 : 0;
    s.ahead = regime == DMS_STREAMED ? ahead : regime == DMS_CLAIMED ? claimed : 0;
    s.call = p->call > 0 ? p->call : DMS_LEAST_CALLED;
    s.early = false;
    s.streamed_height = p->streamed_height > 0 ? p->streamed_height : DMS_STREAMED_HIGH;
    s.cached_height = p->cached_height > 0 ? p->cached_height : DMS_TILE_HIGH;
    s.ways = p->level1_ways > 0 ? p->level1_ways : DMS_LEVEL1_WAYS;
    s.way = p->level1_ways > 0 ? (uint32_t)(p->level1 / p->level1_ways) : DMS_LEVEL1_WAY;
    s.level2 = p->level2;
    s.gathered = p->gathered > 0 ? (uint32_t)p->gathered : DMS_LINE;
    return s;
}
