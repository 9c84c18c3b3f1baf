// Memory for descriptors, placed so that a read past the end of an array ends the process.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace harness {

// Every allocation ends at an unreadable page, so that a library that trusts a count too much does not read a
// neighbour's bytes by luck. Pages are used again after release(). Beyond `slots` live allocations the process would
// run out of memory mappings: the rest then comes from the heap, unguarded.
class GuardedMemory {
public:
    GuardedMemory();
    GuardedMemory(const GuardedMemory&) = delete;
    GuardedMemory& operator=(const GuardedMemory&) = delete;

    // Uninitialized, aligned for a type whose size is a multiple of its alignment.
    void* allocate(std::size_t bytes);
    template <class T>
    T* array(std::size_t count) {
        return static_cast<T*>(allocate(count * sizeof(T)));
    }
    // Takes back everything allocated so far.
    void release();

private:
    char* slot(std::size_t index);

    static constexpr std::size_t slots = 16000;  // two mappings each; Linux allows 65530 a process
    std::size_t page_;
    char* pool_;
    std::size_t used_ = 0;
    std::size_t readable_ = 0;  // slots whose page has been made readable
    std::vector<std::pair<void*, std::size_t>> large_;
    std::vector<void*> unguarded_;
};

}  // namespace harness
