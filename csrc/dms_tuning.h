/* dms_tuning.h - every number of the core that was tuned: what it bounds, its unit, and the machine that it was measured on
 *
 * Machines   Zen 3: AMD EPYC, family 25, L1 32 KiB in 8 ways, L2 512 KiB, L3 32 MiB, no AVX-512. Zen 4: AMD EPYC, family 25. Zen 5: AMD EPYC, family 26,
 *            L1 48 KiB in 12 ways, L2 1 MiB, L3 32 MiB. Intel: Sapphire or Emerald Rapids, L2 2 MiB. All are virtual machines with 2 cores, gcc 12.2, November
 *            2026. "Not recorded": no measurement of the number is kept. "Derived": it follows from what is said, and is no measurement. No number was measured
 *            on an Arm machine.
 * Profile    What differs from machine to machine in the first place is in dmlsplit_profile, whose defaults are here (dms_profile.c).
 * Not here   What the structure of a kernel dictates: widths of vectors, registers, rounds of a transposition; and limits that only bound memory.
 *
 * Bytes, unless another unit is named.
 */
#pragma once

enum {
    /* ---- Profile ---- */
    DMS_STREAM_SHARE = 45,              /* percent of the last-level cache that a run reads and writes before its stores pass by the caches. Zen 4, Zen 5 */
    DMS_STREAM_MOST = 16 << 20,         /* and at most: servers and virtual machines report caches that they share. Intel */
    DMS_STREAM_TURNS_SHARE = 60,        /* percent of that from which transposes are streamed. Zen 5, output read once: 0.55 to 0.95 of the time from 9 MB on, 0.9 to 1.3 at 8 MB,
                                           1.3 to 1.9 at 2 to 5 MB */
    DMS_INTEL_LEVEL2_MOST = 4 << 20,    /* largest second-level cache for which the next two hold. Intel */
    DMS_INTEL_STREAM_TURNS = 2,         /* times level 2, from which transposes are streamed. Intel */
    DMS_INTEL_CLAIM = 1,                /* times level 2, from which lines are claimed. Intel */
    DMS_FAMILY_OF_ZEN4 = 25,            /* of AMD: long pieces are not left to memcpy (1.3 to 1.8 times the time), lines are prefetched 1.5 KiB ahead (0.65 to 0.85), streamed
                                           and cached tiles of transposes are lower (0.55 to 0.95), and fills claim no lines (0.45 to 0.75). Zen 4 */
    DMS_LAST_OF_ZEN3 = 0x0f,            /* AMD family 25: models 0x00-0x0f are Zen 3. AMD */
    DMS_LATER_ZEN3 = 0x20, DMS_LAST_LATER_ZEN3 = 0x5f,      /* models 0x20-0x5f are also Zen 3. AMD */
    DMS_MOST_GATHERED = 256,            /* bytes that transposes on Zen 3 gather of each row before they store them past the caches. One core copies 24 MB at 14 to 18 GB/s
                                           to one place, at 11 to 13 by single lines in turns to three or four, at 15 to 17 by 256 or 512 bytes in turns. Zen 3 */
    DMS_LEAST_MEASURED = 512 << 20,     /* traffic of the smallest run for which the machine is measured: 60 ms at 8.5 GB/s. Derived */
    DMS_MEASURED_TICKS = 120000000,     /* ticks of the CPU's clock that measuring takes: 60 ms at 2 GHz. Derived */

    /* ---- Measuring ---- */
    DMS_MEASURED_ROUNDS = 6,            /* all of which have to agree. Not recorded */
    DMS_MEASURED_MARGIN = 10,           /* the faster way has to win by one part in this many. Not recorded */
    DMS_MEASURED_SIDE = 1024,           /* elements of 4 bytes: rows and columns of the matrix. Derived: COPIED */
    DMS_MEASURED_COPIED = 4 << 20,      /* bytes of a copy within the last-level cache. Not recorded */
    DMS_MEASURED_STREAMED = 16 << 20,   /* bytes of a copy beyond the last-level cache. Not recorded */
    DMS_MEASURED_FILLED = 12 << 20,     /* bytes of a fill within the last-level cache. Zen 4, Zen 5 */
    DMS_MEASURED_RUN = 2048,            /* bytes that this fill repeats. Zen 4, Zen 5: where plain and claimed stores differ the most */
    DMS_MEASURED_PIECE = 1 << 18,       /* bytes of a piece that memcpy or a loop copies. Not recorded */
    DMS_TUNED_ROUNDS = 32,              /* rounds of dmlsplit tune. Not recorded */
    DMS_MEASURED_OUTLIERS = 8,          /* one in this many rounds of dmlsplit tune may disagree. Not recorded */
    DMS_NEAREST_AHEAD = 1536,           /* the other distance of prefetches that is tried: 18 cases of rows and long pieces took 0.99 of the time of 1024, 0.98 to 1 of that of
                                           4096. Zen 4 */

    DMS_TRIED_ROUNDS = 6,               /* in which dmlsplit_plan_tune compares two ways. Not recorded */
    DMS_TRIED_MARGIN = 15,              /* percent by which the faster way has to win. Zen 4: with less, 4 of 45 cases preferred one of two equal ways */
    DMS_TRIED_BYTES = 4 << 20,          /* least bytes copied between two readings of the clock. Not recorded */

    /* ---- Prefetching ---- */
    DMS_LINES_AHEAD = 16384,            /* distance of line prefetches. Zen 5; a Zen 4 read rows of 5 + 7 + 9 bytes faster at 1024 */
    DMS_MOST_AHEAD = 1 << 20,           /* largest distance of a profile. Derived: more leaves the second-level cache */
    DMS_PAGES_AHEAD = 8192,             /* distance of page prefetches: the page after the next one. Intel */
    DMS_NEAR_AHEAD = 4096,              /* distance for several streams, or short pieces. Zen 5 */
    DMS_CLAIMED_AHEAD = 1024,           /* distance of prefetchw. Intel */
    DMS_FILLED_AHEAD = 16384,           /* distance of prefetchw in fills. Zen 5 */
    DMS_TRANSPOSED_BYTES_CLAIM = 4,         /* times level 2, from which transposes of bytes claim lines on every CPU. Zen 5 */
    DMS_FILLS_CLAIM = 6,                /* times level 2, from which fills do. Zen 5 */
    DMS_LONG_PIECE_FETCHED = 1024,      /* shorter pieces prefetch at the near distance. Not recorded */

    /* ---- Pieces and runs ---- */
    DMS_SHORTEST_STREAM = 1024,         /* shorter pieces with gaps between them are stored plainly. Not recorded */
    DMS_LEAST_CALLED = 8192,            /* memcpy copies longer pieces, and runs of half as much. Zen 5: 0.91 instead of 0.97 of its time; slower on Zen 4 */
    DMS_LEAST_DESCENDING = 65536,       /* pieces that memcpy does not copy are copied from their end where loads would wait for stores: 0.85 to 1 of the time, rows of 8 KiB pieces 1.1. Zen 4 */
    DMS_MOST_CALLED = 1 << 18,          /* in one call of memcpy: below glibc's limit of rep movsb. Zen 5, glibc 2.36 */
    DMS_SCALAR_CALLED = 128,            /* the scalar kernel calls memcpy for longer runs. Not recorded */
    DMS_FILL_PATTERN = 1024,            /* of a run that is repeated. Zen 5 */
    DMS_FILL_BY_CALL = 1 << 20,         /* least fill that memcpy makes from what it has written. Zen 5 */
    DMS_FILL_DOUBLED = 65536,           /* in one such call. Zen 5 */
    DMS_SHORTEST_RUN = 16,              /* runs of at most so much are single elements. Not recorded */
    DMS_MOVED_RUN = 128,                /* and are moved as elements up to so much unless streamed. Not recorded */
    DMS_MOST_ROW_PARTS = 1024,          /* parts that rows are cut into together: entries of a second-level TLB. Derived */
    DMS_SHORTEST_PIECE = 16,            /* on average: shorter ones cost more to find than to copy. Not recorded */

    /* ---- Small rows ---- */
    DMS_SMALL_BLOCK = 2048,             /* of rows that are moved part by part. Zen 5: 8192 took 1.45 times as long at 134 MB, 1024 was slower within the caches */
    DMS_STAGED_BATCH = 4096,            /* of rows that are staged together. Not recorded */
    DMS_STAGED_FEW = 2,                 /* sources of a join that are prefetched into the second-level cache, where that is better at all. Zen 4 */
    DMS_STAGED_STEP = 128,              /* between reads of a part of a split, up to which its whole is not prefetched there. Zen 4 */
    DMS_STAGED_PART = 256,              /* of each part. Not recorded */
    DMS_SMALL_LEAST_ROWS = 8,           /* rows of a stretch. Not recorded */
    DMS_SMALL_ROW = 64,                 /* a row that is always small, */
    DMS_SMALL_PIECE = 80,               /* pieces on average of others, */
    DMS_SMALL_STREAMED = 128,           /* and the widest piece past the caches. Not recorded, all three */
    DMS_MOST_WIDE_PARTS = 10,           /* parts of 4 bytes and more that permutes of 512 bits gather. Zen 4 or Zen 5, not recorded which */
    DMS_PLANES_LEAST = 8192,            /* least elements of planes by VBMI: 300 pixels of 7 took 3 to 6 times as long as moves. Zen 5 */

    /* ---- Shuffles ---- */
    DMS_GATHERED_PART = 512,            /* of each part, which a streamed split into channels gathers: 0.75 of the time of one line by AVX2, 0.85 by SSSE3; of 256 or 1024
                                           bytes 0.75 to 0.95 (Zen 3). By AVX2 0.9 to 1.05 of the time of one line, by SSSE3 0.9 to 1.15. Zen 4 */
    DMS_SHUFFLE_BATCH = 16384,          /* of blocks that one pass shuffles: half of a first-level cache. Not recorded */
    DMS_SHUFFLE_LEAST_BLOCKS = 8,       /* blocks of rows: with fewer, tables do not pay. Not recorded */
    DMS_SHUFFLE_MOST_PICKS = 8,         /* picks of a vector on average, */
    DMS_SHUFFLE_FEW_STEPS = 3,          /* and where pieces are wide. Not recorded */
    DMS_SHUFFLE_WIDE = 8,               /* a wide piece on average, */
    DMS_SHUFFLE_WIDEST = 12,            /* the widest with vectors of 16, */
    DMS_SHUFFLE_WIDEST_OF_64 = 20,      /* and of 64. Not recorded */
    DMS_SHUFFLE_STREAMED_BLOCK = 512,   /* the longest block of wide pieces past the caches. Not recorded */
    DMS_SHUFFLE_COLUMNS = 8,            /* elements, */
    DMS_SHUFFLE_COLUMN_ROW = 16,        /* and bytes of a row whose columns are sooner transposed. Not recorded */

    /* ---- Transposes ---- */
    DMS_LEAST_MATRIX = 256,             /* elements. Not recorded */
    DMS_NARROW_SIDE = 8,                /* least elements of a side of a transposed matrix; a cache line if that is fewer. Narrower ones are moved: 8 to 11 columns of 2 and 4 bytes
                                           took 1.05 to 2.6 times as long as transposed, by AVX-512, AVX2 and SSSE3. Zen 5 */
    DMS_NARROW_SIDE_OF_BYTES = 12,      /* of bytes: 8 to 11 columns took 0.75 to 1 of it, by AVX-512 1.05 to 1.4. Zen 5 */
    DMS_COLUMNS_FEW = 8,                /* least elements of a row whose columns are transposed, */
    DMS_COLUMNS_WIDE = 8,               /* and bytes of an element from which they are not. Not recorded */
    DMS_TRANSPOSED_FILL = 512,          /* longest target row, in bytes, of a broadcast matrix that is transposed rather than filled. Zen 5: 0.55 of the time */
    DMS_LEAST_FILL = 128,               /* repeated bytes that are a fill. Zen 5 */
    DMS_TILE_SQUARES = 16,              /* squares of a tile within the caches, */
    DMS_TILE_HIGH = 8,                  /* height of a tile in squares. Zen 5, */
    DMS_TILE_LOWER = 4,                 /* and on others: 0.7 to 0.95 of the time of elements of 4 and 8 bytes, beside tiles one or 8 squares high. Zen 4 */
    DMS_LOW_WIDE = 4096,                /* width of tiles one square high if rows of the source conflict, on those others, and of listed rows. Zen 4, Zen 5 */
    DMS_STAGED_WIDE = 256,              /* width of a tile that is copied first, of as many rows as a line has bytes: of 128 bytes 0.95 to 1.05 of the time. Zen 5 */
    DMS_LISTED_AHEAD = 32,              /* listed rows of the source that are prefetched ahead. Zen 4 */
    DMS_NEAR_SHARE = 4,                 /* rows of the target are near each other at this part of the distance of the source's. Zen 4 */
    DMS_LONG_COLUMN = 2048,             /* least rows of columns of bytes that are stored four lines at a time. Zen 5 */
    DMS_STREAMED_HIGH = 3,              /* height of a tile past the caches in squares. Zen 5, */
    DMS_STREAMED_LOWER = 2,             /* and on others, and if rows of the source share sets of the first-level cache: 0.75 to 0.95 of the time of one square or 3 (Zen 4); and
                                           where pages are fetched: 0.8 to 1 of it (Intel) */
    DMS_FETCHED_WITHIN = 4095,          /* bytes between rows of 8-byte elements up to which the next tile is prefetched where pages are fetched: from a page on 1.1 to 1.3 times
                                           the time without, */
    DMS_FETCHED_WITHIN_OF_4 = 2047,     /* and of 4-byte ones; of fewer bytes none are: up to 1.3 times. Intel */
    DMS_STREAMED_WIDE = 4096,           /* width of such a tile, */
    DMS_CARRIED_WIDE = 2048,            /* and where its lines are carried on. Zen 5 */
    DMS_GATHERED_HIGH = 4,              /* height in squares of a tile whose lines are gathered, */
    DMS_GATHERED_OF_BYTES = 2,          /* lines of bytes that are gathered for each row of the target: their squares have 64, */
    DMS_GATHERED_WIDE = 2048,           /* and the tile's width. Zen 3, beside 1024 and 4096, and beside heights of one and two squares */
    DMS_GATHERED_WIDE_ELEMENT = 8,      /* bytes of an element from which gathered squares prefetch in their own rows, if these are as long as a tile is wide, */
    DMS_GATHERED_AHEAD = 128,           /* and how far ahead: 0.65 to 0.95 of the time of the next tile; of 4 bytes 1.1 to 1.6. Zen 3 */
    DMS_GATHERED_SQUARES = 4,           /* lines are gathered if those of so many squares, one beside the other, share sets of the first-level cache: gathered, others
                                           took up to 1.5 times as long. Zen 3 */
    DMS_LONG_TARGET_ROW = 512,          /* rows of the target that are not coalesced. Not recorded */
    DMS_SHORT_TARGET_ROW = 256,         /* shorter rows have more partial lines than whole ones. Not recorded */
    DMS_LEVEL1_WAYS = 8,                /* ways of a first-level cache of unknown size: 32 KiB of a Zen 4. Derived */
    DMS_LEVEL1_WAY = 4096,              /* and bytes of one. Derived */

    /* ---- Single elements ---- */
    DMS_REVERSED_PIECE = 2048,          /* claimed before it is written backwards, or staged for lines. Not recorded */
    DMS_REVERSED_STREAMED = 256,        /* shortest adjacent rows that are streamed: 0.4 to 0.9 of the time, rows of 80 bytes 1.9. Zen 5 */
    DMS_REVERSED_LEAST = 16,            /* least steps of a reversed loop: with fewer, blocks of another loop are five times as fast. Not recorded */
    DMS_STRIDED_LONG = 32,              /* least steps of a long loop: the innermost one is the line, */
    DMS_STRIDED_LEAST = 16,             /* or, if no loop is long, the innermost one of this many. Not recorded */
    DMS_STRIDED_INSIDE = 64,            /* steps of all short loops within it. Not recorded */
    DMS_STRIDED_BLOCK = 16384,          /* whose lines stay in a first-level cache: half of it. Derived */
    DMS_STRIDED_BLOCK_LEAST = 64,       /* steps of a block, */
    DMS_STRIDED_BLOCK_MOST = 1024,      /* and at most. Not recorded */
    DMS_LONGEST_STRIDED = 16,           /* the longest element. Not recorded */

    /* ---- Slices and threads ---- */
    DMS_LEAST_SLICE = 65536,            /* a smaller copy ends before another thread has woken up. Not recorded */
    DMS_SLICE_STEPS = 16,               /* least steps of a slice: rounding both ends changes its share by a tenth at most. Derived */
    DMS_SLICE_LONG_PIECE = 4096,        /* rows of longer pieces are copied part after part as fast. Not recorded */
    DMS_THREAD_SLICES = 4,              /* slices for each thread. Not recorded */
    DMS_THREAD_YIELDS = 200,            /* times that a caller yields before it sleeps. Zen 5 */
    DMS_THREAD_LEAST_TRANSPOSED = 4 << 20,  /* a thread's share of a transpose, */
    DMS_THREAD_LEAST = 10 << 20         /* and of others. Zen 5 */
};
