#include "autotune/c/coconet.h"

int coconet_version(void) { return 1000 * COCONET_VERSION_MAJOR + COCONET_VERSION_MINOR; }
