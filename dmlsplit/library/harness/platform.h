// What differs between Linux and Windows: platform_linux.cpp and platform_windows.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "com.h"

namespace harness {

// Memory: `reserve` gives addresses that cannot be read, a multiple of the page size; std::bad_alloc.
std::size_t pageSize();
char* reserve(std::size_t bytes);
void makeReadable(char* start, std::size_t bytes);
void unreserve(char* start, std::size_t bytes);

// A function of the library at `path`, which stays loaded; std::runtime_error.
void* libraryFunction(const std::string& path, const char* name);

// An event of the system, of which only Windows has one.
void setEvent(void* event);

struct MalformedLine : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Execute = std::function<std::string(const std::string&)>;

constexpr unsigned timeoutSeconds = 20;  // for one command

// Executes the commands and prints an answer to each; std::runtime_error where one is malformed.
//
// On Linux in worker processes, copies of this one, in which the library is loaded and the device exists already: a
// descriptor that ends one costs its own answer, and the next worker goes on behind it. On Windows, which has no such
// copies, in this process: it ends behind the answer "crash" or "timeout", and library.py starts another.
void answer(const std::vector<std::string>& commands, const Execute& execute);

std::string answerOf(HResult result);

// Ends the process without the library's destructors: some builds wait there for a device that never existed.
[[noreturn]] void endProcess(int status);

}  // namespace harness
