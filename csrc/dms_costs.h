/* dms_costs.h - what kernels cost where they are slow: dms_costs.c */
#pragma once

/* The scale of the table's costs: a kernel that costs more than another one, where both can, is slower there. */
enum {
    DMS_AFTER_COLUMNS = 35,             /* slower than transposes of columns, faster than moves */
    DMS_AFTER_MOVES = 45,               /* slower than moves, faster than rows */
    DMS_AFTER_SLOW_COLUMNS = 46,
    DMS_PART_BY_PART = 100,             /* a kernel for all parts that costs more loses to copies of one part after the other */
    DMS_AFTER_PARTS = 150,
    DMS_AFTER_SCALAR = 65,              /* slower than one run after the other */
    DMS_IMPOSSIBLE = 1000
};
