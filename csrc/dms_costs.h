/* dms_costs.h - the cost of kernels in cases where they are slow (dms_costs.c) */
#pragma once

/* The scale of the kernel table: of two kernels that can copy a plan, the one with the higher cost is slower. */
enum {
    DMS_AFTER_COLUMNS = 35,             /* slower than transposes of columns, faster than moves */
    DMS_AFTER_MOVES = 45,               /* slower than moves, faster than rows */
    DMS_AFTER_SLOW_COLUMNS = 46,
    DMS_PART_BY_PART = 100,             /* limit for group kernels: above it, copying part after part is faster */
    DMS_AFTER_PARTS = 150,
    DMS_AFTER_SCALAR = 65,              /* slower than copying one run after another */
    DMS_IMPOSSIBLE = 1000
};
