// What `stderr` is to code that is linked with --wrap=stderr: a variable of the shared library
// itself. Debian's static libraries reach variables only where they are in the same file.
#include <cstdio>

extern "C" {
extern FILE* __real_stderr;
FILE* __wrap_stderr;
}

// Before other constructors.
__attribute__((constructor(101))) static void SetStandardError() { __wrap_stderr = __real_stderr; }
