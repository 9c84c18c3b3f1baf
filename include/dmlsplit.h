/* dmlsplit.h - split and join of strided tensors on the CPU
 *
 * A split cuts one tensor (the whole) along an axis into consecutive parts; a join is its inverse. A geometry is turned into a plan
 * once, which checks everything that memory safety needs; running the plan cannot fail afterwards and never allocates.
 *
 * Units      Sizes and lengths count elements; strides, offsets and ranges are bytes and may be negative or zero. No pointer needs any
 *            alignment, and strides need not be multiples of the element size.
 * Ownership  The library keeps no pointer that it was given, beyond the call. Text that is returned as const char * is static.
 * Threads    A plan is immutable: any number of threads may use one at the same time, as long as none of them destroys it. All functions
 *            are safe to call from several threads, and after fork().
 * Errors     A function that can fail returns a dmlsplit_status and leaves the memory behind its pointers alone when it does.
 * Memory     Bytes that belong to no element (padding between strides) are neither read nor written.
 *
 * C99 and C++11. There is nothing to configure: compile every .c file below csrc/ with this folder as an include path.
 */
#ifndef DMLSPLIT_H
#define DMLSPLIT_H

#include <stddef.h>
#include <stdint.h>

/* Of this header; dmlsplit_version() is the library's. Whatever else states the version reads it here, or is held against it. */
#define DMLSPLIT_VERSION_MAJOR 0
#define DMLSPLIT_VERSION_MINOR 1
#define DMLSPLIT_VERSION_PATCH 0
#define DMLSPLIT_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define DMLSPLIT_VERSION_TEXT(major, minor, patch) DMLSPLIT_VERSION_TEXT_(major, minor, patch)
#define DMLSPLIT_VERSION DMLSPLIT_VERSION_TEXT(DMLSPLIT_VERSION_MAJOR, DMLSPLIT_VERSION_MINOR, DMLSPLIT_VERSION_PATCH)

/* The default suits code that is compiled in. A shared library is built with DMLSPLIT_SHARED and DMLSPLIT_BUILDING defined, and used
 * with DMLSPLIT_SHARED alone. */
#if !defined(DMLSPLIT_SHARED)
#define DMLSPLIT_API
#elif defined(_WIN32) && defined(DMLSPLIT_BUILDING)
#define DMLSPLIT_API __declspec(dllexport)
#elif defined(_WIN32)
#define DMLSPLIT_API __declspec(dllimport)
#else
#define DMLSPLIT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The Python extension takes its declarations from the text between the two markers: no preprocessor lines but plain constants. */
/* cffi: begin */

#define DMLSPLIT_MAX_RANK 64            /* numpy's limit; DirectML's is 8 */
#define DMLSPLIT_WHOLE 0xffffffffffffffffull   /* dmlsplit_fault.part: the whole, or no tensor in particular */
#define DMLSPLIT_NO_DIMENSION 0xffffffffu      /* dmlsplit_fault.dimension: no dimension in particular */

typedef enum dmlsplit_status {
    DMLSPLIT_OK = 0,
    DMLSPLIT_NULL_POINTER = 1,          /* an argument or member that may not be NULL is */
    DMLSPLIT_BAD_STRUCT_SIZE = 2,       /* struct_size is of no version that this library knows */
    DMLSPLIT_BAD_DIRECTION = 3,
    DMLSPLIT_BAD_FLAGS = 4,             /* an unknown flag is set */
    DMLSPLIT_BAD_ELEMENT_SIZE = 5,      /* 0 */
    DMLSPLIT_BAD_RANK = 6,              /* 0, or above the limit */
    DMLSPLIT_BAD_AXIS = 7,              /* not below the rank */
    DMLSPLIT_NO_PARTS = 8,
    DMLSPLIT_LENGTH_SUM = 9,            /* the lengths do not add up to the whole's size on the axis */
    DMLSPLIT_OVERFLOW = 10,             /* bytes of a tensor, or its byte range, exceed INT64_MAX or this host's address space */
    DMLSPLIT_OUTPUT_OVERLAP = 11,       /* two elements of one written tensor share a byte */
    DMLSPLIT_OVERLAP_UNDECIDED = 12,    /* the bounded search ended before it could tell whether they do */
    DMLSPLIT_OUT_OF_MEMORY = 13,
    DMLSPLIT_UNKNOWN_KERNEL = 14,       /* these two are for kernels asked for by name, which only tests and benchmarks do */
    DMLSPLIT_KERNEL_REFUSED = 15,
    DMLSPLIT_WRONG_DIRECTION = 16,      /* a join's plan given to dmlsplit_split, or the reverse */
    DMLSPLIT_BAD_PART = 17,             /* part index out of range */
    DMLSPLIT_RANGES_INTERSECT = 18,     /* byte ranges of two buffers intersect, one of them written */
    DMLSPLIT_BAD_SLICE = 19,            /* slice index not below the number of slices */
    DMLSPLIT_UNKNOWN_TARGET = 20,       /* neither a feature level nor a release */
    DMLSPLIT_BAD_TENSOR = 32,           /* DirectML: the tensor is not of type BUFFER */
    DMLSPLIT_BAD_DATA_TYPE = 33,        /* DirectML: unknown, below 8 bits, or not that of the first tensor */
    DMLSPLIT_RANK_MISMATCH = 34,        /* DirectML: DimensionCount differs */
    DMLSPLIT_SIZE_MISMATCH = 35,        /* DirectML: sizes differ off the axis */
    DMLSPLIT_ZERO_SIZE = 36,            /* DirectML: has no empty tensors */
    DMLSPLIT_TOTAL_SIZE = 37            /* DirectML: an element lies beyond TotalTensorSizeInBytes */
} dmlsplit_status;

typedef enum dmlsplit_direction {
    DMLSPLIT_SPLIT = 0,                 /* reads the whole, writes the parts */
    DMLSPLIT_JOIN = 1                   /* reads the parts, writes the whole */
} dmlsplit_direction;

/* dmlsplit_geometry.flags: written tensors may overlap themselves. Which of the values stored to a shared byte remains is not promised. */
#define DMLSPLIT_OVERLAP_ALLOWED 1

/* One whole, cut along axis into part_count parts. Off the axis every part has the whole's sizes. Sizes and lengths may be zero. */
typedef struct dmlsplit_geometry {
    uint32_t struct_size;               /* sizeof(dmlsplit_geometry), so that the struct can grow */
    uint32_t direction;                 /* dmlsplit_direction */
    uint32_t element_size;              /* bytes, at least 1 */
    uint32_t rank;                      /* 1 to DMLSPLIT_MAX_RANK */
    uint32_t axis;
    uint32_t flags;
    uint64_t part_count;                /* at least 1 */
    const uint64_t *sizes;              /* the whole's, [rank] */
    const int64_t *strides;             /* the whole's, bytes, [rank]; NULL: packed, last dimension innermost */
    const uint64_t *lengths;            /* of the parts on the axis, [part_count] */
    const int64_t *part_strides;        /* bytes, [part_count][rank]; NULL: every part is packed */
} dmlsplit_geometry;

/* Where a geometry or a set of buffers was found wrong. This struct does not grow, hence has no struct_size. */
typedef struct dmlsplit_fault {
    uint64_t part;                      /* index, or DMLSPLIT_WHOLE */
    uint32_t dimension;                 /* index, or DMLSPLIT_NO_DIMENSION */
} dmlsplit_fault;

typedef struct dmlsplit_plan dmlsplit_plan;

/* Checks a geometry and plans its copies. *plan is the caller's to destroy; it is NULL after a failure. fault may be NULL; it is set in
 * every case (to DMLSPLIT_WHOLE and DMLSPLIT_NO_DIMENSION where no place is to blame). Takes memory proportional to part_count * rank, and as
 * much time for packed tensors; at most part_count * rank * rank for strides that let no dimensions be merged; to which the overlap search
 * adds, with a fixed bound. A geometry with a zero among its sizes makes a valid plan that touches nothing, whatever its strides. Not
 * promised: which of several faults is reported. */
DMLSPLIT_API dmlsplit_status dmlsplit_plan_create(const dmlsplit_geometry *geometry, dmlsplit_plan **plan, dmlsplit_fault *fault);

/* Frees a plan. NULL is ignored. */
DMLSPLIT_API void dmlsplit_plan_destroy(dmlsplit_plan *plan);

/* The bytes that running the plan may touch, as offsets from the tensor's base pointer: begin <= 0 <= end, end is exclusive. Negative strides
 * reach below the base. An empty tensor has the range 0, 0. No argument may be NULL. */
DMLSPLIT_API dmlsplit_status dmlsplit_plan_whole_range(const dmlsplit_plan *plan, int64_t *begin, int64_t *end);
DMLSPLIT_API dmlsplit_status dmlsplit_plan_part_range(const dmlsplit_plan *plan, uint64_t part, int64_t *begin, int64_t *end);

/* The geometry's part_count: how many base pointers a run is given; 0 for NULL. */
DMLSPLIT_API uint64_t dmlsplit_plan_part_count(const dmlsplit_plan *plan);

/* Bytes that one run copies (padding not counted); 0 for an empty plan or NULL. */
DMLSPLIT_API uint64_t dmlsplit_plan_bytes(const dmlsplit_plan *plan);

/* Tells whether the byte ranges [pointer + begin, pointer + end) are as far apart as a run needs: in a split the parts from each other and
 * from the whole, in a join the whole from every part. DMLSPLIT_OK: they are. DMLSPLIT_RANGES_INTERSECT: ranges do, with fault naming one
 * part; the elements within may still be apart (two columns of one matrix), which this function does not look into. Takes
 * O(part_count) for pointers in ascending order and for joins, else O(n log n) and, above 16 parts, 24 bytes a part that it allocates
 * and frees (hence DMLSPLIT_OUT_OF_MEMORY). The memory itself is not touched. parts is the array that dmlsplit_split or dmlsplit_join
 * gets, whose elements are void * or const void *: C converts neither of these arrays to the other. NULLs and fault: as for dmlsplit_split. */
DMLSPLIT_API dmlsplit_status dmlsplit_plan_check_ranges(const dmlsplit_plan *plan, const void *whole, const void *parts,
                                                         dmlsplit_fault *fault);

/* Run a plan: parts is an array of part_count base pointers, in the order of the geometry's lengths. An empty part may be NULL; a plan that
 * touches nothing ignores both pointers; any other NULL gets DMLSPLIT_NULL_POINTER and nothing is copied. The buffers must
 * cover the plan's ranges, and what is written may share no byte with any other buffer of the call: neither is checked here, and the
 * result is undefined otherwise. In a join the parts may share memory with each other. No allocation, no locks.
 * Not promised: the order in which elements are copied. */
DMLSPLIT_API dmlsplit_status dmlsplit_split(const dmlsplit_plan *plan, const void *whole, void *const *parts);
DMLSPLIT_API dmlsplit_status dmlsplit_join(const dmlsplit_plan *plan, const void *const *parts, void *whole);

/* The same on up to so many threads, the caller's among them (0 and 1: the caller's alone), which take slices. The other threads are started
 * when a run first asks for them, and sleep until the next one, which costs some 50 us to wake them; the caller does the share of one that
 * comes late or cannot be had. They take no signals, and end with the process or when the library is unloaded (on Windows it stays loaded).
 * Safe from several threads at once, which share them, and after fork(), where the child starts its own. Not promised: how many threads do
 * anything (64 at most, and fewer where each would have little to do). */
DMLSPLIT_API dmlsplit_status dmlsplit_split_threads(const dmlsplit_plan *plan, const void *whole, void *const *parts, uint32_t threads);
DMLSPLIT_API dmlsplit_status dmlsplit_join_threads(const dmlsplit_plan *plan, const void *const *parts, void *whole, uint32_t threads);

/* For threads of the caller's own: a run is cut into count slices, which may run at the same time, on any threads and in any order; when all indices
 * from 0 to count - 1 have run once, with the same buffers, every byte is written once. Slices are equal within a tenth in bytes and run the kernel
 * that the plan has. They may meet within a cache line.
 *
 * dmlsplit_plan_slices: how many slices a plan is worth cutting into, 1 to most; fewer than most where slices would have less than 64 KB, or too
 * few rows to be equal. 1 for a plan that touches nothing, for most 0 and for NULL. No other count is forbidden: slices beyond
 * dmlsplit_plan_slices(plan, count) are empty. parts is the array that dmlsplit_split or dmlsplit_join gets; in a split whole is only read,
 * in a join what parts point to. NULLs: as for dmlsplit_split. Nothing is allocated and no lock is taken. */
DMLSPLIT_API uint32_t dmlsplit_plan_slices(const dmlsplit_plan *plan, uint32_t most);
DMLSPLIT_API dmlsplit_status dmlsplit_run_slice(const dmlsplit_plan *plan, const void *whole, const void *parts, uint32_t index,
                                                 uint32_t count);

/* Writes a text for people: the loops after folding, the kernels chosen, and why those before them were refused. As snprintf: at most capacity
 * bytes with the terminating 0, which is always there if capacity > 0; returns the full length without it. buffer may be NULL if
 * capacity is 0. A NULL plan gives an empty text. The wording is not an interface. */
DMLSPLIT_API size_t dmlsplit_plan_describe(const dmlsplit_plan *plan, char *buffer, size_t capacity);

/* One line of English, never NULL. */
DMLSPLIT_API const char *dmlsplit_status_string(dmlsplit_status status);

/* The library's version, "0.1.0". */
DMLSPLIT_API const char *dmlsplit_version(void);

/* How memory is asked for ahead of what copies read, whose stores pass by the caches. */
typedef enum dmlsplit_fetch {
    DMLSPLIT_FETCH_LINES = 0,           /* each line 16 KB ahead */
    DMLSPLIT_FETCH_PAGES = 1            /* the first lines of the page after the next, while a page is read */
} dmlsplit_fetch;

typedef enum dmlsplit_origin {
    DMLSPLIT_FROM_CPUID = 0,            /* what is known of such CPUs */
    DMLSPLIT_FROM_MEASURING = 1,
    DMLSPLIT_FROM_SETTINGS = 2          /* dmlsplit_set_profile, or a variable */
} dmlsplit_origin;

/* The sizes that plans are made for, in bytes that one run reads and writes: 0 is always, UINT64_MAX never. */
typedef struct dmlsplit_profile {
    uint32_t struct_size;               /* sizeof(dmlsplit_profile), so that the struct can grow */
    uint32_t fetch;                     /* dmlsplit_fetch */
    uint64_t level2;                    /* second-level cache, 0: not known. Told only */
    uint64_t last_level;                /* the largest cache that the machine reports, which need not be this thread's alone. Told only */
    uint64_t stream_copies;             /* stores pass by the caches from here on; at most 16 MiB by default */
    uint64_t stream_turns;              /* the same for matrices that are turned, and columns of one element */
    uint64_t claim;                     /* below that, stores ask for their lines ahead (prefetchw) from here on; turned bytes do from four times level2 on */
    uint32_t origin;                    /* dmlsplit_origin. Told only */
    uint32_t reserved;                  /* 0 */
} dmlsplit_profile;

/* The profile of plans that are created from now on. At first it is what CPUID says of the machine. The first plan of 8 MiB or
 * more measures the rest once, which takes 20 to 80 ms and 32 MiB for that time: how to fetch, whether to claim, and when to turn matrices past
 * the caches. It does not where a profile was set, where the variable DMLSPLIT_MEASURE is 0, and where the library was compiled with
 * -DDMLSPLIT_MEASURE=0. The variables DMLSPLIT_STREAM_COPIES, DMLSPLIT_STREAM_TURNS and DMLSPLIT_CLAIM (bytes) and DMLSPLIT_FETCH (lines or
 * pages) each fix one member. dmlsplit_set_profile(NULL) begins anew.
 * Results do not depend on it, times do; plans with the same geometry and profile run alike. A thread that creates a plan while another sets a
 * profile may see some members of either. struct_size is set before both calls. */
DMLSPLIT_API dmlsplit_status dmlsplit_get_profile(dmlsplit_profile *profile);
DMLSPLIT_API dmlsplit_status dmlsplit_set_profile(const dmlsplit_profile *profile);

/* The CPU features that kernels ask for and this machine has, separated by spaces ("" if none). Same conventions as dmlsplit_plan_describe. */
DMLSPLIT_API size_t dmlsplit_cpu_features(char *buffer, size_t capacity);

/* The kernels compiled in, best first; the last takes every geometry. name and isa ("any" or the CPU feature needed) are NULL, and available
 * (1: this CPU has what the kernel needs) is 0, for an index that is out of range. */
DMLSPLIT_API uint32_t dmlsplit_kernel_count(void);
DMLSPLIT_API const char *dmlsplit_kernel_name(uint32_t index);
DMLSPLIT_API const char *dmlsplit_kernel_isa(uint32_t index);
DMLSPLIT_API int dmlsplit_kernel_available(uint32_t index);

/* cffi: end */

#ifdef __cplusplus
}
#endif

#endif
