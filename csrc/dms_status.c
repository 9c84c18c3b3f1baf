/* dms_status.c - names for numbers */
#include "dmlsplit.h"

const char *dmlsplit_version(void)
{
    return DMLSPLIT_VERSION;
}

const char *dmlsplit_status_string(dmlsplit_status status)
{
    switch (status) {
    case DMLSPLIT_OK: return "no error";
    case DMLSPLIT_NULL_POINTER: return "a pointer that may not be NULL is";
    case DMLSPLIT_BAD_STRUCT_SIZE: return "struct_size is below that of the struct's first version, or there are bytes other than 0 behind what this version knows";
    case DMLSPLIT_BAD_DIRECTION: return "the direction is neither split nor join";
    case DMLSPLIT_BAD_FLAGS: return "an unknown flag is set";
    case DMLSPLIT_BAD_ELEMENT_SIZE: return "the element size is 0";
    case DMLSPLIT_BAD_RANK: return "the rank is 0 or above the limit";
    case DMLSPLIT_BAD_AXIS: return "the axis is not below the rank";
    case DMLSPLIT_NO_PARTS: return "there are no parts";
    case DMLSPLIT_LENGTH_SUM: return "the lengths of the parts do not add up to the size on the axis";
    case DMLSPLIT_OVERFLOW: return "a tensor exceeds the address space";
    case DMLSPLIT_OUTPUT_OVERLAP: return "elements of a written tensor overlap";
    case DMLSPLIT_OVERLAP_UNDECIDED: return "could not determine whether elements of a written tensor overlap";
    case DMLSPLIT_OUT_OF_MEMORY: return "out of memory";
    case DMLSPLIT_UNKNOWN_KERNEL: return "there is no kernel of that name";
    case DMLSPLIT_KERNEL_REFUSED: return "the kernel asked for does not take this geometry or this CPU";
    case DMLSPLIT_WRONG_DIRECTION: return "the plan is for the other direction";
    case DMLSPLIT_BAD_PART: return "the part index is out of range";
    case DMLSPLIT_RANGES_INTERSECT: return "the byte ranges of two buffers intersect";
    case DMLSPLIT_BAD_SLICE: return "the slice index is not below the number of slices";
    case DMLSPLIT_UNKNOWN_TARGET: return "the target is neither a feature level nor a release";
    case DMLSPLIT_BAD_PROFILE: return "a member of the profile has a value that it cannot have, or a line of its text is neither a member with its value nor a comment";
    case DMLSPLIT_BAD_TENSOR: return "the tensor is not of type BUFFER";
    case DMLSPLIT_BAD_DATA_TYPE: return "the data type is unknown, below 8 bits, or not that of the other tensors";
    case DMLSPLIT_RANK_MISMATCH: return "the tensors differ in DimensionCount";
    case DMLSPLIT_SIZE_MISMATCH: return "the tensors differ in a size off the axis";
    case DMLSPLIT_ZERO_SIZE: return "a size is 0";
    case DMLSPLIT_TOTAL_SIZE: return "an element lies beyond TotalTensorSizeInBytes";
    }
    return "unknown status";
}
