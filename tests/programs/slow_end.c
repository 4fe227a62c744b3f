/* A library that takes its time when the process ends, which is after whatever `atexit` was told. */

#include <unistd.h>

__attribute__((destructor)) static void end_slowly(void) { usleep(300000); }
