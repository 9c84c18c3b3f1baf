/* dms_kernel.h - declarations shared by the files in kernels/ */
#pragma once

#include "dms_internal.h"

#include <string.h>

#define DMS_DECLARE_GROUP(name, can, slow)                                                                              \
    const char *can(const dmlsplit_plan *plan);                                                                         \
    dms_slow slow(const dmlsplit_plan *plan);                                                                           \
    void dms_run_##name(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last);
#define DMS_DECLARE_STRETCH(name, can, slow)                                                                            \
    const char *can(const dmlsplit_plan *plan);                                                                         \
    dms_slow slow(const dmlsplit_plan *plan);                                                                           \
    dms_stretch_copier dms_copy_##name;
#define DMS_DECLARE_TABLE(name, can, slow)                                                                              \
    DMS_DECLARE_STRETCH(name, can, slow)                                                                                \
    void *dms_prepare_##name(const dmlsplit_plan *plan);
#define DMS_DECLARE_NEST(name, can, slow)                                                                               \
    const char *can(const dms_nest *nest);                                                                              \
    dms_slow slow(const dms_nest *nest);                                                                                \
    void dms_run_##name(const dms_nest *nest, char *target, const char *source);
#define DMS_KERNEL(kind, name, isa, can, slow, cost) DMS_DECLARE_##kind(name, can, slow)
#include "dms_kernels.inc"

/* Marks functions of rows that a build may leave out of the table; they are still compiled. */
const char *dms_can_packed_rows(const dmlsplit_plan *plan);
const char *dms_can_equal(const dmlsplit_plan *plan);
const char *dms_can_columns(const dmlsplit_plan *plan);
const char *dms_can_rows(const dmlsplit_plan *plan);
const char *dms_can_runs(const dms_nest *nest);
const char *dms_can_transpose(const dms_nest *nest);
const char *dms_can_reverse(const dms_nest *nest);
dms_slow dms_slow_channels_avx512vbmi(const dmlsplit_plan *plan);
dms_slow dms_slow_columns(const dmlsplit_plan *plan);
dms_slow dms_slow_rows(const dmlsplit_plan *plan);
dms_slow dms_slow_runs(const dms_nest *nest);
dms_slow dms_slow_transpose(const dms_nest *nest);
dms_slow dms_slow_planes_avx512vbmi(const dms_nest *nest);
dms_slow dms_slow_reverse(const dms_nest *nest);

/* ---- Instruction sets ---- */

/* Kernels keep arrays of vectors in registers, so loops over such arrays must be unrolled. gcc does that at -O3 only (at -O2 three channels took three
 * times as long), so kernels are compiled as if by -O3, and loops that are too long even for -O3 carry a pragma. Other loops carry none, because gcc would
 * also unroll those without a constant bound. clang unrolls short loops by itself; pragmas make it unroll longer ones and keep it from unrolling loops
 * that seldom reach four rounds; DMS_KEPT_ROLLED keeps gcc, too, from unrolling a loop with a constant bound. Builds without optimisation and with
 * sanitizers have no pragmas: these would multiply the code.
 *
 * Functions and loops begin on cache lines, so that the length of the code before a loop does not decide how fast it is: with the same instructions 16 bytes
 * further on, rows of 16 + 320 bytes took 1.08 times as long (Zen 4). */
#if !defined(__GNUC__) || !defined(__OPTIMIZE__) || defined(__OPTIMIZE_SIZE__) || DMS_SANITIZED
#define DMS_UNROLLED
#define DMS_UNROLLED_LONG
#define DMS_UNROLLED_BY_4
#define DMS_ROLLED
#define DMS_KEPT_ROLLED
#elif defined(__clang__)
#define DMS_UNROLLED _Pragma("clang loop unroll(full)")
#define DMS_UNROLLED_LONG DMS_UNROLLED
#define DMS_UNROLLED_BY_4 _Pragma("clang loop unroll_count(4)")
#define DMS_ROLLED _Pragma("clang loop unroll(disable)")
#define DMS_KEPT_ROLLED DMS_ROLLED
#else
#define DMS_UNROLLED
#define DMS_UNROLLED_LONG _Pragma("GCC unroll 16")
#define DMS_UNROLLED_BY_4 _Pragma("GCC unroll 4")
#define DMS_ROLLED
#define DMS_KEPT_ROLLED _Pragma("GCC unroll 1")
#pragma GCC optimize("O3", "align-functions=64", "align-loops=64")
#endif

/* Each function declares its instruction set, so no file needs compiler flags. MSVC accepts any intrinsic anywhere. */
#if DMS_MSVC
#define DMS_TARGET_SSSE3
#define DMS_TARGET_AVX2
#define DMS_TARGET_AVX512
#define DMS_TARGET_AVX512VBMI
#else
#define DMS_TARGET_SSSE3 __attribute__((target("ssse3")))
#define DMS_TARGET_AVX2 __attribute__((target("avx2")))
#define DMS_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define DMS_TARGET_AVX512VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#endif

/* Where stores are streamed, the source is prefetched. The address may lie beyond the buffer: a prefetch does not fault, and it is computed as a number
 * because a pointer may not point there. DMS_FETCH_PAGE is for kernels that gain by prefetching pages only. These are macros because gcc 12 takes a
 * function that only prefetches for one without effects, and drops calls that it does not inline.
 *
 *     page by page:  the 64 lines of a page prefetch the first 16 of the page after the next, each four times:   page 0 ----/4---> page 2 */
static DMS_ALWAYS_INLINE uintptr_t dms_ahead(uintptr_t address, uintptr_t page, uintptr_t ahead)
{
    return (address & ~page) + ahead + ((address & page) >> 2);
}

/* Returns how far ahead cache lines are prefetched, in bytes. Short pieces defeat the hardware prefetcher, so every line is prefetched, within a page whose
 * first lines were prefetched by pages; where the hardware keeps up anyway, this is nearly free. Several streams keep enough pages open by themselves, and
 * a longer distance for each would prefetch too much at once. */
static DMS_ALWAYS_INLINE uintptr_t dms_lines_ahead(const dms_stores *stores, bool one_stream)
{
    return one_stream && stores->page_mask == 0 ? stores->ahead : DMS_NEAR_AHEAD;
}

#if DMS_X86
#if DMS_MSVC
#include <immintrin.h>
#else
#include <xmmintrin.h>                  /* prefetches and fences alone: immintrin.h takes longer to parse than most kernels to compile */
#endif
#define DMS_PREFETCH_NEAR(address) _mm_prefetch((const char *)(address), _MM_HINT_T0)
#define DMS_PREFETCH_FAR(address) _mm_prefetch((const char *)(address), _MM_HINT_T1)
#elif defined(__GNUC__)                 /* Arm: prfm pldl1keep and pldl2keep */
#define DMS_PREFETCH_NEAR(address) __builtin_prefetch((const char *)(address), 0, 3)
#define DMS_PREFETCH_FAR(address) __builtin_prefetch((const char *)(address), 0, 2)
#else
#define DMS_PREFETCH_NEAR(address) ((void)(address))
#define DMS_PREFETCH_FAR(address) ((void)(address))
#endif
#define DMS_PREFETCH_AT(address, distance) DMS_PREFETCH_NEAR((uintptr_t)(address) + (uintptr_t)(distance))
#define DMS_FETCH_PAGE(address, stores) \
    ((stores)->page_mask > 0 ? DMS_PREFETCH_FAR(dms_ahead((uintptr_t)(address), (stores)->page_mask, (stores)->ahead)) : (void)0)
#define DMS_FETCH(address, page, ahead) \
    ((page) > 0 ? DMS_PREFETCH_FAR(dms_ahead((uintptr_t)(address), page, ahead)) : DMS_PREFETCH_AT(address, ahead))

/* Fetches a cache line for writing by prefetchw, so that a later plain store does not wait for the line's old bytes.
 * Every CPU with vectors of 32 bytes has prefetchw (CPUID says so); on others the instruction does nothing. */
#if DMS_X86 && DMS_MSVC
#define DMS_CLAIM(address, distance) _m_prefetchw((const void *)((uintptr_t)(address) + (uintptr_t)(distance)))
#elif DMS_X86
#define DMS_CLAIM(address, distance) __asm__ volatile("prefetchw %a0" : : "r"((const char *)((uintptr_t)(address) + (uintptr_t)(distance))))
#elif defined(__GNUC__)                 /* Arm: prfm pstl1keep */
#define DMS_CLAIM(address, distance) __builtin_prefetch((const char *)((uintptr_t)(address) + (uintptr_t)(distance)), 1)
#else
#define DMS_CLAIM(address, distance) ((void)(address))
#endif

/* ---- Walking ---- */

/* Returns the base pointer of a part. It is read as bytes, because the array's elements may be pointers to const or
 * to non-const. */
static inline char *dms_part_base(const dms_buffers *buffers, uint64_t part)
{
    void *base;
    memcpy(&base, (const char *)buffers->parts + (size_t)part * sizeof base, sizeof base);
    return base;
}

/* Sets `count` indices to 0, the first combination. An initializer would clear all 64, which takes longer than a
 * small copy does. */
static inline void dms_first(uint32_t count, uint64_t *index)
{
    memset(index, 0, count * sizeof index[0]);
}

/* Advances both pointers to the next combination of the indices of loops[0, count), the last index fastest. Returns false after the last combination, with
 * index and pointers as at the start. dms_first sets index. */
static inline bool dms_next(const dms_loop *loops, uint32_t count, uint64_t *index, char **target, const char **source)
{
    for (uint32_t d = count; d-- > 0;) {
        const dms_loop *loop = &loops[d];
        if (++index[d] < loop->size) {
            *target += loop->target_stride;
            *source += loop->source_stride;
            return true;
        }
        *target -= (int64_t)(loop->size - 1) * loop->target_stride;
        *source -= (int64_t)(loop->size - 1) * loop->source_stride;
        index[d] = 0;
    }
    return false;
}

/* Copies size bytes by one move or by two overlapping ones: 9 to 15 bytes by two moves of 8. The second one moves the
 * last `end` bytes. move and end are constants; move is at most size, and both together are at least size. */
static DMS_ALWAYS_INLINE void dms_move(char *to, const char *from, size_t size, size_t move, size_t end)
{
    memcpy(to, from, move);
    if (size > move)
        memcpy(to + size - end, from + size - end, end);
}

/* Copies size bytes inline, for sizes where a call would cost more than the copy. */
static DMS_ALWAYS_INLINE void dms_copy_short(char *to, const char *from, size_t size)
{
    DMS_ROLLED
    for (size_t i = 16; i < size; i += 16)
        memcpy(to + i - 16, from + i - 16, 16);
    if (size >= 16)
        memcpy(to + size - 16, from + size - 16, 16);
    else if (size >= 8)
        dms_move(to, from, size, 8, 8);
    else if (size >= 4)
        dms_move(to, from, size, 4, 4);
    else if (size >= 2)
        dms_move(to, from, size, 2, 2);
    else if (size > 0)
        *to = *from;
}

/* Copies any size. On AMD CPUs glibc's memcpy uses rep movsb up to 0.5 or 1 MiB, and for larger sizes a loop that is
 * slower while everything is cached; so memcpy is called for pieces below that limit. */
static inline void dms_copy_long(char *to, const char *from, size_t size)
{
    for (; size > DMS_MOST_CALLED; size -= DMS_MOST_CALLED, to += DMS_MOST_CALLED, from += DMS_MOST_CALLED)
        memcpy(to, from, DMS_MOST_CALLED);
    memcpy(to, from, size);
}

/* Copies count runs at constant steps by a loop for their size; runs of 20 bytes took 0.4 of the time of calls (kernels/scalar.c). */
void dms_copy_runs(char *to, const char *from, int64_t to_stride, int64_t from_stride, uint64_t count, size_t run);

/* ---- Rows (dms_stretch.c) ---- */

/* Consecutive rows at one stride in the whole, and at one stride in each part. */
typedef struct dms_stretch {
    const dmlsplit_plan *plan;
    const dms_buffers *buffers;
    uint64_t index[DMLSPLIT_MAX_RANK];  /* of the first row */
    uint64_t rows;
    char *whole;                        /* its first row */
    int64_t stride;                     /* bytes to the next one in the whole */
} dms_stretch;

/* A part in a stretch. */
typedef struct dms_stretch_part {
    char *base;                         /* its first row */
    int64_t stride;                     /* bytes to the next one */
    size_t size;                        /* bytes of a row, */
    int64_t row_begin;                  /* and where they begin in a row of the whole */
} dms_stretch_part;

/* Sets *stretch to the longest stretch that begins at *row and ends before `last`, and *row to the row after it.
 * Returns false if there is none. */
bool dms_next_stretch(dms_stretch *stretch, const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t *row, uint64_t last);

/* Returns the bytes from an operand's base pointer to the first row. */
static inline int64_t dms_first_row(const dms_stretch *s, const dms_operand *operand)
{
    int64_t offset = operand->offset;
    for (uint32_t d = 0; d < s->plan->space.axis; d++)
        offset += (int64_t)s->index[d] * operand->strides[d];
    return offset;
}

/* Sets *found to the first part from *part on that is not empty, and *part to the part after it. Returns false if
 * there is none. */
static inline bool dms_next_part(const dms_stretch *s, uint64_t *part, dms_stretch_part *found)
{
    const dmlsplit_plan *plan = s->plan;
    while (*part < plan->part_count && plan->parts[*part].shape == NULL)
        ++*part;
    if (*part == plan->part_count)
        return false;
    const dms_operand *operand = plan->parts[*part].shape->operand;
    found->base = dms_part_base(s->buffers, *part) + dms_first_row(s, operand);
    found->stride = operand->strides[plan->space.axis - 1];
    found->size = (size_t)(operand->length * plan->space.element_size);
    found->row_begin = plan->parts[*part].origin - plan->space.operands[0].offset;
    ++*part;
    return true;
}

/* Copies rows [first, last) by the copy_stretch of the plan's kernel, stretch by stretch. */
void dms_run_small_rows(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last);
