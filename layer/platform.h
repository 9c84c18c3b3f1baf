/* platform.h - what differs between Linux and Windows: platform_linux.c and platform_windows.c */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a function of the real library, which is in the same folder as this one; NULL if it has none by this name. */
void *layer_real_function(const char *name);

/* Returns a function that the program exports; NULL if it exports none by this name. */
void *layer_function_of_program(const char *name);

/* Returns the value of an environment variable in UTF-8, which the caller frees; NULL if it is not set or empty. */
char *layer_variable(const char *name);

/* Returns true if a byte of this process's memory can be read. */
bool layer_is_readable(const void *byte);

/* Storage class of thread-local variables. */
#if defined(_MSC_VER)
#define LAYER_THREAD __declspec(thread)
#else
#define LAYER_THREAD _Thread_local
#endif

/* The lock of the whole layer; it is not recursive. */
void layer_lock(void);
void layer_unlock(void);

/* Adds to a number atomically, and returns the sum. */
uint32_t layer_plus(uint32_t *number, int32_t by);

/* Returns the next number of a sequence that starts with 1; atomic. */
uint64_t layer_next_number(void);

uint64_t layer_nanoseconds(void);
uint64_t layer_thread(void);
uint64_t layer_process(void);

/* A file to which threads and processes append lines, each atomically. layer_open returns NULL if it cannot be opened. */
typedef struct layer_file layer_file;
layer_file *layer_open(const char *path);
void layer_append(layer_file *file, const char *text, size_t length);

void layer_to_standard_error(const char *text, size_t length);

/* Sends a null-terminated text to the debugger, if there is one. */
void layer_to_debugger(const char *text);
