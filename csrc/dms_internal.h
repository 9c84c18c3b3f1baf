/* dms_internal.h - what the files of the core share
 *
 * geometry --dms_plan.c--> space (all tensors folded together) --dms_fold.c--> a nest of loops for each shape of part
 *          (dms_confirm.c replays what was folded, where that is asked for)
 *          --dms_kernels.c--> a kernel for the whole space, or one for each nest --dms_execute.c--> copies
 */
#pragma once

#include "dms_c_only.h"

#include "dms_tuning.h"

#include "dmlsplit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__) || defined(__i386__) || (defined(_M_X64) && !defined(_M_ARM64EC)) || defined(_M_IX86)
#define DMS_X86 1
#else
#define DMS_X86 0
#endif

/* Part of the base architecture, so no run-time check. Lanes are in memory order on little-endian machines only. */
#if ((defined(__aarch64__) && !defined(__AARCH64EB__)) || defined(_M_ARM64)) && !defined(DMLSPLIT_NO_NEON)
#define DMS_NEON 1
#define DMS_IF_NEON(line) line
#else
#define DMS_NEON 0
#define DMS_IF_NEON(line)
#endif

/* Which kernels are compiled in. DMLSPLIT_NO_AVX512 and similar macros exclude what a compiler does not support or a
 * program does not want. */
#if DMS_X86 && !defined(DMLSPLIT_NO_SSSE3)
#define DMS_SSSE3 1
#define DMS_IF_SSSE3(line) line
#else
#define DMS_SSSE3 0
#define DMS_IF_SSSE3(line)
#endif
#if DMS_SSSE3 && !defined(DMLSPLIT_NO_AVX2)
#define DMS_AVX2 1
#define DMS_IF_AVX2(line) line
#else
#define DMS_AVX2 0
#define DMS_IF_AVX2(line)
#endif
/* Not on macOS: XNU enables AVX-512 for a thread when it first uses it, so XCR0 answers differently from thread to thread, and has corrupted opmask
 * registers in signal handlers. */
#if DMS_AVX2 && !defined(DMLSPLIT_NO_AVX512) && !defined(__APPLE__)
#define DMS_AVX512 1
#define DMS_IF_AVX512(line) line
#else
#define DMS_AVX512 0
#define DMS_IF_AVX512(line)
#endif

/* clang-cl takes gcc's attributes. */
#if defined(_MSC_VER) && !defined(__clang__)
#define DMS_MSVC 1
#define DMS_ALWAYS_INLINE __forceinline
#define DMS_NEVER_INLINE __declspec(noinline)
#else
#define DMS_MSVC 0
/* Without optimisation, inlined functions do not share stack space. */
#ifdef __OPTIMIZE__
#define DMS_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define DMS_ALWAYS_INLINE inline
#endif
#define DMS_NEVER_INLINE __attribute__((noinline))
#endif

/* Sanitizers, as gcc and clang name them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DMS_SANITIZED 1
#elif defined(__has_feature)
#define DMS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer))
#else
#define DMS_SANITIZED 0
#endif

/* ---- CPU features (dms_cpu.c) ---- */

/* Bits of a mask. Each one implies those of its family before it, and that the operating system saves the registers it uses. */
enum {
    DMS_ISA_ANY = 0,
    DMS_ISA_SSSE3 = 1u << 0,
    DMS_ISA_AVX2 = 1u << 1,
    DMS_ISA_AVX512 = 1u << 2,           /* F, BW, DQ and VL: everything that a byte shuffle of 512 bits needs */
    DMS_ISA_AVX512VBMI = 1u << 3,
    DMS_ISA_NEON = 1u << 4
};

/* Returns the mask of the features that this CPU has. */
uint32_t dms_cpu_isa(void);

/* Returns the name of one bit; "any" if it is not in the mask. Static. */
const char *dms_isa_name(uint32_t isa);

/* ---- Folding (dms_fold.c) ---- */

/* A tensor in a space. */
typedef struct dms_operand {
    uint64_t length;                    /* on the space's axis; 1 if there is none */
    int64_t offset;                     /* bytes from the base pointer to the element with all indices 0 */
    int64_t *strides;                   /* bytes, [rank]; the axis's entry is unused if length is 1 */
} dms_operand;

#define DMS_NO_AXIS UINT32_MAX

/* One step of folding, which preserves the bytes that a space addresses. dms_confirm.c says under which condition. */
typedef enum dms_rewriting_kind {
    DMS_REORDER,                        /* dimension order[d] becomes dimension d; dimensions that order does not name are dropped */
    DMS_MERGE,                          /* inner is merged into outer, and is left with size 1 */
    DMS_REVERSE,                        /* outer is traversed backwards */
    DMS_ABSORB,                         /* outer becomes a part of the element, and is left with size 1 */
    DMS_WIDEN                           /* two elements on the axis become one */
} dms_rewriting_kind;

typedef struct dms_rewriting {
    uint8_t kind;                       /* dms_rewriting_kind */
    uint8_t outer, inner, count;
    uint8_t order[DMLSPLIT_MAX_RANK];   /* [count] */
} dms_rewriting;

/* Each dimension is merged at most once and reversed at most once; the other kinds are few. */
enum { DMS_MOST_REWRITINGS = 2 * DMLSPLIT_MAX_RANK + 8 };

typedef struct dms_trace {
    uint32_t count;
    dms_rewriting rewritings[DMS_MOST_REWRITINGS];
} dms_trace;

/* Tensors that are traversed with the same indices. All have the same sizes, except that each has its own length on
 * the axis, if there is one. */
typedef struct dms_space {
    uint32_t rank;
    uint32_t axis;                      /* a dimension or DMS_NO_AXIS */
    uint64_t element_size;              /* bytes that are contiguous in every operand */
    uint64_t sizes[DMLSPLIT_MAX_RANK];  /* none is 0; the entry of the axis is not used */
    uint64_t operand_count;
    dms_operand *operands;              /* the first one determines signs and the order of the loops */
    dms_trace *trace;                   /* receives the steps of folding; may be NULL */
} dms_space;

/* Brings a space to its canonical form, which addresses the same bytes in fewer loops: no dimension of size 1, no
 * two dimensions that could be merged, positive strides in the first operand for every dimension that can be
 * reversed, contiguous innermost dimensions absorbed into the element, dimensions in descending order of the first
 * operand's strides. The axis stays a dimension, has absorbed the inner dimensions that continue it (all lengths are
 * scaled) and comes last, so that the loops before it are the rows. */
void dms_fold(dms_space *space);

/* ---- Plans (dms_plan.c) ---- */

#define DMS_LINE 64                     /* bytes of a cache line; a macro for the templates, which compare it with VECTOR in #if */

typedef struct dms_loop {
    uint64_t size;
    int64_t target_stride;
    int64_t source_stride;
} dms_loop;

/* How a run stores, chosen by the number of bytes that it reads and writes. */
typedef enum dms_regime {
    DMS_PLAIN,
    DMS_CLAIMED,                        /* plain, but each cache line is fetched by prefetchw before it is written */
    DMS_STREAMED                        /* non-temporal, past the caches; the source is prefetched */
} dms_regime;

typedef struct dms_stores {
    dms_regime regime;
    uintptr_t page_mask;                /* 4095: the source is prefetched page by page; 0: line by line */
    uintptr_t ahead;                    /* prefetch distance in bytes: of the source if streamed, of the target if
                                           claimed; 0 if plain */
    uint64_t call;                      /* least size of a contiguous piece that memcpy copies */
    uint32_t streamed_height, cached_height;    /* of tiles of transposes, in squares */
    bool early;                         /* a streamed transpose of fewer bytes than a copy is streamed from */
    uint32_t way, ways;                 /* size of a way of the first-level cache, and the number of its ways */
    uint64_t level2;                    /* size of the second-level cache; 0 if it is not known */
    uint32_t gathered;                  /* bytes of a row of the target that are gathered before they are stored past the caches */
} dms_stores;

/* How a nest moves its elements; determines how it stores and where slices cut it. */
typedef enum dms_kind {
    DMS_MOVE,
    DMS_TRANSPOSE,                      /* of matrices: one loop is contiguous in the target, another in the source */
    DMS_FILL,                           /* repeats a run over contiguous memory */
    DMS_KINDS
} dms_kind;

#define DMS_NO_MATRIX UINT32_MAX

/* A matrix of 2 to 16 rows or columns without gaps between them: pixels of that many elements on one side, planes on
 * the other. */
typedef struct dms_pixels {
    unsigned count;                     /* number of planes; 0: the nest has no pixels */
    bool split;                         /* pixels to planes */
} dms_pixels;

/* The copy of one part: runs of contiguous bytes, repeated by loops. Sizes are at least 2. */
typedef struct dms_nest {
    dms_kind kind;                      /* set by dms_classify, as are columns and pixels */
    uint32_t columns;                   /* the loop that is contiguous in the source, if the nest has a matrix whose
                                           rows are the last loop; or DMS_NO_MATRIX */
    dms_pixels pixels;                  /* of that matrix */
    uint32_t rank;
    size_t run;                         /* bytes */
    int64_t part_offset;                /* bytes from the part's base pointer to the first run */
    int64_t whole_offset;               /* bytes from the part's origin in the whole to the first run */
    dms_stores stores;
    dms_loop *loops;                    /* [rank], outermost first, in descending order of the target's strides */
} dms_nest;

/* Sets kind, columns and pixels from the other members. */
void dms_classify(dms_nest *nest);

typedef struct dms_kernel dms_kernel;

/* The shape of consecutive parts with equal length and strides: a million equal parts share one. */
typedef struct dms_shape {
    const dms_operand *operand;         /* in plan->space */
    uint64_t count;                     /* parts */
    uint64_t bytes;                     /* of each */
    int64_t begin, end;                 /* bytes touched, from the part's base pointer */
    dms_nest nest;
    const dms_kernel *kernel;           /* copies the nest; if there is plan->group, it is used only in slices of
                                           few, long rows, or NULL */
} dms_shape;

typedef struct dms_part {
    const dms_shape *shape;             /* NULL: the part is empty */
    int64_t origin;                     /* offset in the whole of the part's element with all indices 0 in the space */
    uint64_t before;                    /* bytes of all parts before it */
} dms_part;

enum {                                  /* one index for each row of the kernel table */
#define DMS_KERNEL(kind, name, isa, can, slow, cost) DMS_KERNEL_##name,
#include "dms_kernels.inc"
    DMS_KERNEL_COUNT
};

struct dmlsplit_plan {
    uint32_t direction;
    uint64_t part_count;
    uint64_t bytes;                     /* copied by one run; 0: the plan is empty and everything below is 0 or NULL */
    int64_t begin, end;                 /* bytes of the whole touched, from its base pointer */
    uint64_t rows;                      /* product of the space's sizes before the axis */
    dms_stores stores[DMS_KINDS];       /* how nests of each kind store; group kernels store as moves, or as transposes of columns */
    dms_space space;                    /* operand 0 is the whole, operand 1 + i is shape i */
    uint64_t shape_count;
    dms_shape *shapes;
    dms_part *parts;                    /* [part_count] */
    uint64_t unit;                      /* size of the longest piece that no slice cuts (dms_least_unit) */
    const dms_kernel *group;            /* copies all parts at once; NULL: every shape has its own kernel */
    void *tables;                       /* of the group kernel; NULL: it needs none */
    const char *refusals[DMS_KERNEL_COUNT]; /* why a kernel of the table was passed over; NULL: it was chosen, or not
                                               tried */
    int64_t *strides;                   /* storage of space.operands, */
    dms_loop *loops;                    /* of shapes' nests */
};

/* ---- Confirming (dms_confirm.c) ---- */

/* True if plans are to be confirmed: always in tests, otherwise if the environment variable DMLSPLIT_CHECK is 1. */
bool dms_confirms(void);

/* Applies the steps to the space. Returns NULL, or why a step would change an address. */
const char *dms_replay(dms_space *space, const dms_trace *trace);

/* Replay the steps that folded a geometry into the plan's space, or the space into the nest of a shape, and compare
 * the result with the plan. Return NULL, or a static text that says what is wrong; also NULL if there is no memory. */
const char *dms_confirm_space(const dmlsplit_plan *plan, const dmlsplit_geometry *geometry, const dms_trace *trace);
const char *dms_confirm_nest(const dmlsplit_plan *plan, const dms_shape *shape, const dms_trace *trace);

/* Aborts unless the text is NULL, because the plan would copy the wrong bytes. */
void dms_require(const char *wrong);

/* ---- Geometry (dms_geometry.c) ---- */

/* Checks everything about a geometry except extents and overlap. Returns DMLSPLIT_OK, with *elements set to the
 * whole's number of elements, or the status of a fault, with fault->dimension set to the dimension at fault if there
 * is one. */
dmlsplit_status dms_check_geometry(const dmlsplit_geometry *geometry, uint64_t *elements, dmlsplit_fault *fault);

/* Sets *begin and *end to the bytes that a tensor without zero sizes touches, as offsets from its base pointer; end is exclusive. Returns false, with
 * *dimension set to the dimension that goes too far and nothing else, if the range exceeds PTRDIFF_MAX bytes. */
bool dms_byte_range(uint32_t rank, const uint64_t *sizes, const int64_t *strides, uint64_t element_size, int64_t *begin, int64_t *end,
                    uint32_t *dimension);

/* Returns DMLSPLIT_OK if no two elements of a tensor share a byte, DMLSPLIT_OUTPUT_OVERLAP if two do,
 * DMLSPLIT_OVERLAP_UNDECIDED if the search ended undecided. No size is 0, and the tensor's byte range fits an
 * int64_t. *budget is the number of steps that the search may take, less those it took after the call. */
dmlsplit_status dms_check_overlap(uint32_t rank, const uint64_t *sizes, const int64_t *strides, uint64_t element_size, uint32_t *budget);

/* ---- Kernels (dms_kernels.c, kernels) ---- */

/* The memory of one run. const is dropped here, because kernels serve both directions: a split never writes through
 * whole, a join never through parts. parts is an array of pointers to void, const or not. */
typedef struct dms_buffers {
    void *whole;
    const void *parts;
} dms_buffers;

/* Copies a stretch of small rows (dms_channels.h). tables: the kernel's own. */
typedef struct dms_channels dms_channels;
typedef void dms_stretch_copier(const dms_channels *channels, const void *tables, bool split, const dms_stores *stores);

/* The cost of a kernel in a case where it is slow, and the reason as a static text; 0 and NULL if it is not slow. */
typedef struct dms_slow {
    unsigned cost;
    const char *why;
} dms_slow;

/* A kernel has one of two forms, and NULL for the members of the other one. can_* returns NULL, or why not, as a static text.
 *   group: copies rows [first, last) of all parts
 *   nest:  copies one part
 * Two forms, because parts have base pointers of their own, which only a run knows: a group kernel looks them up at each run, a nest kernel
 * has nothing to look up, which makes small plans fast. The code that copies is shared: rows and runs, columns and transpose, channels and planes are two
 * entries each into one template.
 * The caller fences what kernels stream (dms_slices.c). Kernels of small rows get one stretch after the other.
 * prepare_group returns the tables that copy_stretch reads, for free(), or NULL without memory.
 */
struct dms_kernel {
    const char *name;
    uint32_t isa;                       /* the bit that the CPU must have, or DMS_ISA_ANY */
    unsigned cost;                      /* where it is not slow */
    const char *(*can_group)(const dmlsplit_plan *plan);
    dms_slow (*slow_group)(const dmlsplit_plan *plan);
    void (*run_group)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last);
    const char *(*can_nest)(const dms_nest *nest);
    dms_slow (*slow_nest)(const dms_nest *nest);
    void (*run_nest)(const dms_nest *nest, char *target, const char *source);
    dms_stretch_copier *copy_stretch;   /* or NULL */
    void *(*prepare_group)(const dmlsplit_plan *plan);  /* or NULL */
};

extern const dms_kernel dms_kernel_table[DMS_KERNEL_COUNT];

/* Sets the plan's kernels, and the tables of a group kernel: the cheapest ones that this CPU has. With a name, only that kernel. Returns
 * DMLSPLIT_KERNEL_REFUSED if the kernel with that name cannot copy the plan or is slow for it, DMLSPLIT_OUT_OF_MEMORY without memory for the tables. */
dmlsplit_status dms_choose_kernels(dmlsplit_plan *plan, const char *name);

/* Returns the kernel for a box that was cut from a nest of kernel `chosen`: that one, or the next one of the table that can copy the box and is not slow. */
const dms_kernel *dms_kernel_for(const dms_kernel *chosen, const dms_nest *box);

/* As dmlsplit_plan_create, with only the kernel of this name: also returns DMLSPLIT_UNKNOWN_KERNEL or
 * DMLSPLIT_KERNEL_REFUSED, with *plan NULL. kernel NULL: the best one. For tests and benchmarks. */
dmlsplit_status dms_plan_create(const dmlsplit_geometry *geometry, const char *kernel, dmlsplit_plan **plan, dmlsplit_fault *fault);

/* Returns DMLSPLIT_OK if the name is NULL or in the table, else DMLSPLIT_UNKNOWN_KERNEL. */
dmlsplit_status dms_check_kernel_name(const char *name);

/* ---- The machine (dms_profile.c, dms_measure.c, dms_stores.c) ---- */

/* Sets *profile to the profile for runs that read and write `traffic` bytes in all. The first large run measures the
 * machine. */
void dms_profile_for(uint64_t traffic, dmlsplit_profile *profile);

/* Replaces the members of the profile on which `rounds` rounds of measuring agree. Stops after `ticks` of the CPU's
 * clock. */
void dms_measure(dmlsplit_profile *profile, int rounds, uint64_t ticks);

/* Returns how to store in a regime. claimed: how far ahead DMS_CLAIMED claims cache lines, in bytes. */
dms_stores dms_stores_for(const dmlsplit_profile *profile, dms_regime regime, uintptr_t claimed);

/* The first four letters of a vendor's name, as CPUID has them in ebx. */
enum { DMS_VENDOR_AMD = 0x68747541, DMS_VENDOR_INTEL = 0x756e6547 };

/* Replaces the defaults by values measured on CPUs of this vendor and signature (CPUID leaf 1, eax). */
void dms_set_defaults_of(uint32_t vendor, uint32_t signature, dmlsplit_profile *profile);

/* Sets *profile from CPUID and the environment, without a measurement. */
void dms_detect_profile(dmlsplit_profile *profile);

/* True if each member that can be set has a valid value. */
bool dms_is_profile(const dmlsplit_profile *profile);

static inline bool dms_is_streamed(const dms_stores *stores)
{
    return stores->regime == DMS_STREAMED;
}

/* True if what is read past the caches is prefetched into the second-level cache, as a Zen 4 prefers it, rather than into the first-level one: together with
 * the height of streamed tiles, this is one question to the machine (dms_measure.c). */
static inline bool dms_fetches_far(const dms_stores *stores)
{
    return stores->streamed_height < DMS_STREAMED_HIGH;
}

/* ---- Slices and threads (dms_slices.c, dms_threads.c, dms_execute.c) ---- */

/* How a run is cut into slices: into equal numbers of rows of all parts, or into equal numbers of bytes, part after
 * part. */
typedef struct dms_slices {
    uint64_t count;                     /* 1: the plan as a whole */
    bool by_rows;
} dms_slices;

/* Rows or bytes [first, last), and the parts that contain them; last is 0 if the slice is empty. */
typedef struct dms_slice {
    uint64_t first, last;
    uint64_t first_part, last_part;
} dms_slice;

/* Returns a cut into at most `most` slices, in constant time. */
dms_slices dms_choose_slices(const dmlsplit_plan *plan, uint64_t most);

/* Returns the slice with this index; an empty one if index is not below cut->count. */
dms_slice dms_find_slice(const dmlsplit_plan *plan, const dms_slices *cut, uint64_t index);

/* Copies the bytes of a slice; nothing if it is empty. */
void dms_run_slice(const dmlsplit_plan *plan, const dms_buffers *buffers, const dms_slices *cut, const dms_slice *slice);

/* Returns the size in bytes of the pieces that no slice cuts in parts of this shape: a run, or a row on the shorter
 * side of a matrix. */
uint64_t dms_least_unit(const dms_shape *shape);

/* Runs all slices on at most `threads` threads, including the caller. */
void dms_run_on_threads(const dmlsplit_plan *plan, const dms_buffers *buffers, uint32_t threads);

/* Returns DMLSPLIT_NULL_POINTER if the plan is NULL or a pointer that its run needs, else DMLSPLIT_OK. */
dmlsplit_status dms_check_pointers(const dmlsplit_plan *plan, const dms_buffers *buffers);

/* Runs the plan as a whole, on the calling thread. */
void dms_run_all(const dmlsplit_plan *plan, const dms_buffers *buffers);

/* ---- For the tests ---- */

#ifdef DMS_TESTING
/* Makes dms_cpu_isa() return (detected & mask) from now on, so that tests can simulate older CPUs. Not thread-safe. */
void dms_cpu_mask(uint32_t mask);

/* The least bytes of a slice, for tests to lower. Counters: bytes that slices copied with a kernel other than the
 * chosen one; runs of each kernel; steps that planning took, over strides, bytes of tables, and parts of slices; and
 * fences that ended runs. */
extern uint32_t dms_removed_kernel;     /* index of a row that is left out of the table; DMS_KERNEL_COUNT: none */
extern bool (*dms_other_cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t *registers);    /* what another CPU answers; NULL: this one is asked */
extern void (*dms_while_measuring)(void);       /* called before what was measured is kept; may be NULL */
extern void (*dms_before_slice)(void);          /* called by a thread before it copies a slice; may be NULL */
extern double (*dms_other_clock)(void);         /* seconds, instead of the system's clock; may be NULL */
extern uint64_t dms_least_slice, dms_fallback_bytes, dms_kernel_runs[DMS_KERNEL_COUNT], dms_plan_steps, dms_fences;
#define DMS_COUNT_RUN(kernel) ((void)dms_kernel_runs[(kernel) - dms_kernel_table]++)
#define DMS_COUNT_STEPS(count) ((void)(dms_plan_steps += (count)))
#define DMS_ASSERT(condition) ((condition) ? (void)0 : abort())
#else
#define DMS_COUNT_RUN(kernel) ((void)0)
#define DMS_COUNT_STEPS(count) ((void)0)
#define DMS_ASSERT(condition) ((void)0)
#endif
