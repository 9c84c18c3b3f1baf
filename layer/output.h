/* output.h - what the layer writes: a line of JSON for each call and one for its return, and sentences about those that fail
 *
 * Environment variables, read at the first call:
 *
 *     DMLSPLIT_LAYER_FILE          the lines are appended to this file; "%p" in its name is the number of the process
 *     DMLSPLIT_LAYER_CALLBACK      a function that the program exports, void function(const char *text, size_t length), gets each line, and each
 *                                  sentence, from the thread that calls; neither ends with a 0
 *     DMLSPLIT_LAYER_MESSAGES      where sentences go: "stderr", "debug" (the debugger's output), both, or "none"; by default both
 *     DMLSPLIT_LAYER_DIRECTML      the release that Splits and Joins are judged by ("1.15.4"); by default the device's feature level
 */
#pragma once

#include "copy.h"

/* A text that grows; where there is no memory for it, it is cut off, and failed. */
typedef struct layer_text {
    char *bytes;
    size_t length, capacity;
    bool failed;
} layer_text;

void layer_add(layer_text *text, const char *piece);
void layer_add_number(layer_text *text, uint64_t number);
void layer_add_hresult(layer_text *text, HRESULT result);   /* 0x80070057 */
void layer_add_operator(layer_text *text, const DML_OPERATOR_DESC *desc);
void layer_add_graph(layer_text *text, const DML_GRAPH_DESC *graph, const DML_OPERATOR_DESC *const *descs);

/* One call of the program. */
typedef struct layer_call {
    const char *name;
    uint64_t number, start, nanoseconds;
    layer_text line;                    /* an object without its last brace */
} layer_call;

/* Whether lines go anywhere. */
bool layer_writes(void);

/* The release of DMLSPLIT_LAYER_DIRECTML, as dmlsplit_find_release has it, or 0. */
uint32_t layer_release(void);

/* Begins a call's line; `device` is the number of the call that made its device, or 0. */
layer_call layer_begin(const char *name, uint64_t device);
void layer_key(layer_call *call, const char *key);
void layer_key_number(layer_call *call, const char *key, uint64_t number);

/* Writes the line. The call is made between layer_submit, which starts the clock, and layer_stop. */
void layer_submit(layer_call *call);
void layer_stop(layer_call *call);

/* Writes the line of the return. For a void function `result` is NULL, and `removed` is the reason if the function removed the device, or 0.
 * `sentence` may be NULL. */
void layer_returned(const layer_call *call, const HRESULT *result, HRESULT removed, const char *sentence);

/* Sends a message to the configured outputs. */
void layer_say(const char *sentence);

/* Returns the message for a failed call: its result and, if known, the reason. The caller frees it; NULL if out of memory. */
char *layer_sentence(const layer_call *call, const char *did, HRESULT result, const layer_copy *copy, uint32_t target);

/* Returns the message for a descriptor with which CreateOperator of this release reads memory out of bounds. The caller frees it; NULL if it is not
 * known to do that, or if out of memory. */
char *layer_warning(const layer_copy *copy, uint32_t target);
