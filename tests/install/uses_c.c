/* The header is that of the library. */
#include <coconet.h>
#include <stdio.h>

int main(void) {
  const int header = 1000 * COCONET_VERSION_MAJOR + COCONET_VERSION_MINOR;
  printf("header %d, library %d\n", header, coconet_version());
  return header != coconet_version();
}
