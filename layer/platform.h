/* platform.h - what differs between Linux and Windows: platform_linux.c and platform_windows.c */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function of the real library, which lies beside this one; NULL where there is none. */
void *layer_real_function(const char *name);

/* A function that the program exports by this name; NULL where there is none. */
void *layer_function_of_program(const char *name);

/* The value of an environment variable in UTF-8, to be freed; NULL where it is not set or empty. */
char *layer_variable(const char *name);

/* Whether a byte of this process's memory can be read. */
bool layer_is_readable(const void *byte);

/* Before a variable that each thread has one of. */
#if defined(_MSC_VER)
#define LAYER_THREAD __declspec(thread)
#else
#define LAYER_THREAD _Thread_local
#endif

/* One lock for the whole layer; it is not taken twice. */
void layer_lock(void);
void layer_unlock(void);

/* Adds to a number, whatever other threads do; the sum. */
uint32_t layer_plus(uint32_t *number, int32_t by);

/* The next number, from 1. */
uint64_t layer_next_number(void);

uint64_t layer_nanoseconds(void);
uint64_t layer_thread(void);
uint64_t layer_process(void);

/* A file to which lines are appended, each of them whole whatever other threads and processes append; NULL where it cannot be opened. */
typedef struct layer_file layer_file;
layer_file *layer_open(const char *path);
void layer_append(layer_file *file, const char *text, size_t length);

void layer_to_standard_error(const char *text, size_t length);

/* To the debugger; where there is none, nothing happens. The text is terminated. */
void layer_to_debugger(const char *text);
